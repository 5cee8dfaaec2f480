import { writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { writeConfiguration } from '../contenders/configuration.ts';
import { memoryOf, startNode, type NodeProcess } from '../node-process.ts';
import type { Figures } from '../result.ts';
import { projectIds, type Workload } from '../workload.ts';
import { build, COMPILED, startReady } from './daemon.ts';
import type { Row } from './row.ts';

const PROJECTS = 10;
const PROMPTS = 100_000;
const REST_MS = 60_000;
const QUICK_REST_MS = 15_000;
/** Schedule after the first poll, which comes at once. */
const EVERY_10_SECONDS = '*/10 * * * * *';
const NEVER = '0 0 29 2 *';
/** Node flags by the name of the figure. */
const MILLION = [
  ['million', []],
  ['contained', ['--max-old-space-size=128']],
] as const;

/** Memory of the compiled daemon. */
export const memory: Row = {
  name: 'memory',
  title: `the daemon: ${PROJECTS} projects of few prompts, polled every 10 s (idle); one poll of a project of ${PROMPTS.toLocaleString('en')} prompts; and ${PROJECTS} such projects, polled for the first time in the same second, without a limit of memory, and with the heap that the image has in a container of 256 MiB (contained)`,
  goals: [
    { metric: 'restBytes', of: 'idle', most: 110e6 },
    { metric: 'peakBytes', of: 'first', above: 'idle', most: 150e6 },
    { metric: 'peakBytes', of: 'changed', above: 'idle', most: 40e6 },
    { metric: 'peakBytes', of: 'unchanged', above: 'idle', most: 25e6 },
    { metric: 'peakBytes', of: 'million', above: 'idle', most: 150e6 },
    { metric: 'restBytes', of: 'million', above: 'idle', most: 100e6 },
    { metric: 'peakBytes', of: 'contained', above: 'idle', most: 150e6 },
    { metric: 'restBytes', of: 'contained', above: 'idle', most: 100e6 },
  ],
  measure: async function* ({ quick }) {
    const restMs = quick ? QUICK_REST_MS : REST_MS;
    await build();
    const few: Workload = { ...STEADY, projects: PROJECTS, prompts: 100 };
    const figures: Record<string, Figures> = {};
    {
      await using polled = await startPolled(few, EVERY_10_SECONDS);
      figures['idle'] = await polled.rest(restMs);
    }
    {
      // The second version differs by 1 %, and the last one is served again and again.
      await using polled = await startPolled({ ...STEADY, prompts: PROMPTS, versions: 2 }, NEVER);
      figures['first'] = await polled.rest(restMs);
      await polled.pollAgain();
      figures['changed'] = await polled.rest(restMs);
      await polled.pollAgain();
      figures['unchanged'] = await polled.rest(restMs);
    }
    for (const [name, flags] of MILLION) {
      const million: Workload = { ...STEADY, projects: PROJECTS, prompts: PROMPTS };
      await using polled = await startPolled(million, NEVER, flags);
      figures[name] = await polled.rest(restMs);
    }
    yield { projects: PROJECTS, prompts: PROMPTS, encoding: 'identity', figures };
  },
};

const STEADY: Workload = {
  projects: 1,
  prompts: 0,
  versions: 1,
  encoding: 'identity',
  etag: false,
};

/** Starts a daemon and waits until all its projects are polled. */
async function startPolled(workload: Workload, schedule: string, flags: readonly string[] = []) {
  const opened = new AsyncDisposableStack();
  const service = opened.use(startNode('bench/service-process.ts', JSON.stringify(workload)));
  const directory = opened.use(await temporaryDirectory());
  const projects = projectIds(workload.projects);
  const config = await writeConfiguration({
    baseUrl: await service.line(),
    projects,
    directory: directory.path,
    change: {
      schedule,
      log: { level: 'info' },
      web: { listen: '127.0.0.1:0', enable_lifecycle: true },
    },
  });
  const daemon = opened.use(await startReady(COMPILED, config, flags));
  for (const _ of projects) await daemon.line('"poll.completed"');
  return {
    pollAgain: async () => {
      await writeFile(`/proc/${daemon.pid}/clear_refs`, '5');
      const [project] = projects;
      const polled = await fetch(`${daemon.url}/-/poll?project=${project}`, { method: 'POST' });
      // The response comes after the poll.
      await polled.text();
      if (!polled.ok) throw new Error(`${project} was not polled: ${polled.status}`);
    },
    rest: async (ms: number) => await restAndMeasure(daemon, ms),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function restAndMeasure({ pid }: NodeProcess, ms: number): Promise<Figures> {
  await setTimeout(ms);
  return {
    restBytes: await memoryOf(pid, 'VmRSS'),
    peakBytes: await memoryOf(pid, 'VmHWM'),
  };
}
