import { soakFaults } from '../test/support/soak/faults.ts';
import { figuresOf } from '../test/support/soak/figures.ts';
import { soak, type SoakOptions } from '../test/support/soak/soak.ts';
import { failing } from './full-disk/troubles.ts';
import { TOLD_THOUGH_NOT_COMMITTED } from './bug.ts';
import type { Figures, Row, RowOptions } from './row.ts';
import { findStrace } from './strace.ts';

type Size = Pick<SoakOptions, 'parts' | 'projects' | 'promptsPerProject' | 'pace' | 'scrapeEvery'>;

const MANY = { projects: 100, promptsPerProject: 200, pace: 0.01, scrapeEvery: 5 };
/** One run of the daemon, with many reloads. */
const RELOADS = { seconds: 10, kills: 0, troubles: 0, reloads: 60 };
/** The last part is one long run, over which memory is measured. */
const LONG: Size = {
  ...MANY,
  parts: [
    RELOADS,
    { seconds: 600, kills: 30, troubles: 15 },
    { seconds: 600, kills: 30, troubles: 15 },
    { seconds: 600, kills: 30, troubles: 15 },
    { seconds: 1800, kills: 0, troubles: 0 },
  ],
};
const SHORT: Size = {
  ...MANY,
  parts: [
    RELOADS,
    { seconds: 120, kills: 10, troubles: 5 },
    { seconds: 180, kills: 0, troubles: 3 },
  ],
};
/** Enough to notice a deliberate mistake. */
const MINI: Size = {
  projects: 4,
  parts: [
    { seconds: 4, kills: 0, troubles: 0 },
    { seconds: 6, kills: 3, troubles: 2 },
  ],
};

/** Everything at once: a lively world, a faulty service, reloads, kills and a failing disk, for an hour. */
export const chaos: Row = {
  name: 'chaos',
  bug: TOLD_THOUGH_NOT_COMMITTED,
  run: ({ short, ...options }) => {
    if (options.source !== undefined) return run(MINI, options);
    return run(short ? SHORT : LONG, options);
  },
};

async function run(size: Size, options: Omit<RowOptions, 'short'>): Promise<Figures> {
  const { seed, print, source } = options;
  const strace = findStrace();
  const trouble = (pid: number) => failing(strace, pid);
  const report = await soak({ ...size, faults: soakFaults('all'), seed, print, source, trouble });
  const { differences } = report;
  if (differences.length > 0) {
    throw new Error(`${differences.length} differences:\n${differences.slice(0, 20).join('\n')}`);
  }
  return figuresOf(report);
}
