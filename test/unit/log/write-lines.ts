import { createLogger, fileDescriptor } from '../../../src/log/logger.ts';

// Writes numbered lines to its stdout once its stdin has data:
//   node write-lines.ts COUNT [nonblocking]
const [count, mode] = process.argv.slice(2);
// Node makes a pipe non-blocking as soon as its stream is accessed.
if (mode === 'nonblocking') process.stdout.on('error', () => undefined);
const logger = createLogger({
  level: 'info',
  destination: fileDescriptor(1),
  onFatalError: (error) => {
    process.stderr.write(`dead: ${'code' in error ? String(error.code) : error.message}\n`);
    process.exitCode = 1;
  },
});
process.stdin.once('data', () => {
  for (let number = 0; number < Number(count); number += 1) {
    logger.info({ event: 'line', number, padding: 'x'.repeat(100) }, 'Line');
  }
  process.stdin.destroy();
});
