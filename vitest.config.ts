import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** Files that replace modules, which only a process of their own cannot have loaded before. */
const REPLACING = globSync('test/**/*.test.ts').filter((file) =>
  readFileSync(file, 'utf8').includes('vi.mock('),
);

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/end-children.ts'],
    // A slow machine is no failure.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 60_000,
    // On two cores; most tests wait for processes and timers rather than for a core.
    maxWorkers: 7,
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { name: 'replacing', include: REPLACING } },
      {
        extends: true,
        // One process after the other for two hundred files takes longer than most of the tests in them.
        test: {
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: REPLACING,
          isolate: false,
        },
      },
    ],
  },
});
