// Loaded into a daemon by `--import`, it writes figures of the main thread to a file: the longest block of the event loop, which
// is the most CPU time between two turns, because a busy machine does not make that longer. SIGUSR2 resets it, and adds what is
// left after the garbage was collected.
import { isMainThread } from 'node:worker_threads';
import { renameSync, writeFileSync } from 'node:fs';

const LOOK_EVERY_MS = 2;
const WRITE_EVERY_MS = 200;

/** Memory of objects, and what keeps the event loop alive. */
interface Held {
  readonly heapBytes: number;
  /** A type for each connection, timer and the like. */
  readonly resources: readonly string[];
}

export interface Probed {
  /** ms of CPU time. */
  readonly longestBlockMs: number;
  /** Number of the signals so far, and what was held at the last one. */
  readonly signals: number;
  readonly held?: Held;
}

const file = process.env['PROBE_FILE'];
if (file !== undefined && isMainThread) {
  let before = cpuMs();
  let longestBlockMs = 0;
  let signals = 0;
  let held: Held | undefined;
  setInterval(() => {
    const now = cpuMs();
    longestBlockMs = Math.max(longestBlockMs, now - before);
    before = now;
  }, LOOK_EVERY_MS).unref();
  setInterval(() => {
    const probed: Probed = { longestBlockMs, signals, ...(held && { held }) };
    writeFileSync(`${file}.draft`, JSON.stringify(probed));
    renameSync(`${file}.draft`, file);
  }, WRITE_EVERY_MS).unref();
  process.on('SIGUSR2', () => {
    globalThis.gc?.();
    held = {
      heapBytes: process.memoryUsage().heapUsed,
      resources: process.getActiveResourcesInfo(),
    };
    signals += 1;
    before = cpuMs();
    longestBlockMs = 0;
  });
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
