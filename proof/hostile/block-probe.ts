import { isMainThread } from 'node:worker_threads';
import { writeFileSync } from 'node:fs';

const LOOK_EVERY_MS = 2;
const WRITE_EVERY_MS = 200;

/** The longest that the event loop of this process was held up, measured as CPU time of the main thread. */
export interface BlockProbe {
  /** Milliseconds since the last reset. */
  longest(): number;
  reset(): void;
}

/** A machine that is busy with other things does not make a block longer: what is measured is CPU time between two turns. */
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

// With `--import` in a daemon it writes what it finds into a file, and starts anew on a signal.
const file = process.env['BLOCK_FILE'];
if (file !== undefined && isMainThread) {
  const probe = startBlockProbe();
  process.on('SIGUSR2', () => probe.reset());
  setInterval(() => writeFileSync(file, String(probe.longest())), WRITE_EVERY_MS).unref();
}
