// Loaded into a daemon by `--import`, it writes the longest block of the main thread's event loop to a file: the most CPU time
// between two turns, ms, because a busy machine does not make that longer. SIGUSR2 resets it.
import { isMainThread } from 'node:worker_threads';
import { writeFileSync } from 'node:fs';

const LOOK_EVERY_MS = 2;
const WRITE_EVERY_MS = 200;

const file = process.env['BLOCK_FILE'];
if (file !== undefined && isMainThread) {
  let before = cpuMs();
  let longest = 0;
  setInterval(() => {
    const now = cpuMs();
    longest = Math.max(longest, now - before);
    before = now;
  }, LOOK_EVERY_MS).unref();
  setInterval(() => writeFileSync(file, String(longest)), WRITE_EVERY_MS).unref();
  process.on('SIGUSR2', () => {
    before = cpuMs();
    longest = 0;
  });
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
