import { isMainThread } from 'node:worker_threads';
import { writeFileSync } from 'node:fs';

const LOOK_EVERY_MS = 2;
const WRITE_EVERY_MS = 200;

/** Measures the longest block of this process's event loop, as CPU time of the main thread. */
export interface BlockProbe {
  /** Longest block since the last reset, ms. */
  longest(): number;
  reset(): void;
}

/** Starts a probe of the CPU time between two turns, because a busy machine does not make that longer. */
export function startBlockProbe(): BlockProbe {
  let before = cpuMs();
  let longest = 0;
  setInterval(() => {
    const now = cpuMs();
    longest = Math.max(longest, now - before);
    before = now;
  }, LOOK_EVERY_MS).unref();
  return {
    longest: () => longest,
    reset: () => {
      before = cpuMs();
      longest = 0;
    },
  };
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

// Loaded into a daemon by `--import`, it writes the longest block to a file, and resets on SIGUSR2.
const file = process.env['BLOCK_FILE'];
if (file !== undefined && isMainThread) {
  const probe = startBlockProbe();
  process.on('SIGUSR2', () => probe.reset());
  setInterval(() => writeFileSync(file, String(probe.longest())), WRITE_EVERY_MS).unref();
}
