import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // A slow machine is no failure.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Most tests wait for processes and timers rather than for a core.
    maxWorkers: 3,
  },
});
