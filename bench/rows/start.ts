import { temporaryDirectory } from '../../test/support/temporary.ts';
import { writeConfiguration } from '../contenders/configuration.ts';
import { mediansOf } from '../measure.ts';
import { cpuMsOf, startNode } from '../node-process.ts';
import type { Figures } from '../result.ts';
import { projectIds } from '../workload.ts';
import { build, COMPILED, SOURCE, startReady } from './daemon.ts';
import type { Row } from './row.ts';

const PROJECTS = 10;
const STARTS_PER_RUN = 3;

/** Time from the start of the process to the line `daemon.started`, with an existing store. */
export const start: Row = {
  name: 'start',
  title: 'start to ready, and Node that only imports the same libraries',
  goals: [
    { metric: 'wallMs', of: 'compiled', over: 'imports', most: 2 },
    { metric: 'wallMs', of: 'source', over: 'imports', most: 2 },
  ],
  measure: async function* ({ runs }) {
    await build();
    await using directory = await temporaryDirectory();
    const config = await writeConfiguration({
      // Nothing listens there: the daemon is ready before its first poll.
      baseUrl: 'http://127.0.0.1:9',
      projects: projectIds(PROJECTS),
      directory: directory.path,
      change: { log: { level: 'info' } },
    });
    const starts = {
      imports: async () => {
        const node = startNode('bench/contenders/imports.js');
        await node.line('ready');
        return node;
      },
      compiled: () => startReady(COMPILED, config),
      source: () => startReady(SOURCE, config),
    };
    const samples = new Map<string, Figures[]>();
    for (let number = 0; number <= runs * STARTS_PER_RUN; number += 1) {
      for (const [name, started] of Object.entries(starts)) {
        const before = performance.now();
        await using node = await started();
        const wallMs = performance.now() - before;
        const sample = { wallMs, cpuMs: await cpuMsOf(node.pid) };
        // The first start creates the store and fills the caches of the system.
        if (number > 0) samples.set(name, [...(samples.get(name) ?? []), sample]);
      }
    }
    const figures = Object.fromEntries(
      samples.entries().map(([name, taken]) => [name, mediansOf(taken)]),
    );
    yield { projects: PROJECTS, prompts: 0, encoding: 'identity', figures };
  },
};
