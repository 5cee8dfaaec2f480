import { setTimeout } from 'node:timers/promises';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { writeConfiguration } from '../contenders/configuration.ts';
import { memoryOf, startNode } from '../node-process.ts';
import type { Figures } from '../result.ts';
import { projectIds, type Workload } from '../workload.ts';
import { build, COMPILED, startReady } from './daemon.ts';
import type { Row } from './row.ts';

const PROJECTS = 10;
const REST_MS = 60_000;
const QUICK_REST_MS = 15_000;
/** After the first poll, which comes at once. */
const EVERY_10_SECONDS = '*/10 * * * * *';
const NEVER = '0 0 29 2 *';

/** Of the compiled daemon, as it is run. */
export const memory: Row = {
  name: 'memory',
  title: `the daemon with ${PROJECTS} projects, after a while: few prompts, polled every 10 s; and 1,000,000 known`,
  goals: [
    { metric: 'restBytes', of: 'idle', most: 90e6 },
    { metric: 'restBytes', of: 'million known', above: 'idle', most: 250e6 },
  ],
  measure: async function* ({ quick }) {
    const restMs = quick ? QUICK_REST_MS : REST_MS;
    await build();
    const figures = {
      idle: await memoryWith(100, EVERY_10_SECONDS, restMs),
      'million known': await memoryWith(100_000, NEVER, restMs),
    };
    yield { projects: PROJECTS, prompts: 100_000, encoding: 'identity', figures };
  },
};

async function memoryWith(prompts: number, schedule: string, restMs: number): Promise<Figures> {
  const workload: Workload = {
    projects: PROJECTS,
    prompts,
    versions: 1,
    encoding: 'identity',
    etag: false,
  };
  await using service = startNode('bench/service-process.ts', JSON.stringify(workload));
  await using directory = await temporaryDirectory();
  const config = await writeConfiguration({
    baseUrl: await service.line(),
    projects: projectIds(PROJECTS),
    directory: directory.path,
    change: { schedule, log: { level: 'info' } },
  });
  await using daemon = await startReady(COMPILED, config);
  for (let polled = 0; polled < PROJECTS; polled += 1) await daemon.line('"poll.completed"');
  await setTimeout(restMs);
  return {
    restBytes: await memoryOf(daemon.pid, 'VmRSS'),
    peakBytes: await memoryOf(daemon.pid, 'VmHWM'),
  };
}
