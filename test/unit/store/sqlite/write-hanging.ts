/** Writes the file of the argument to a file system that hangs: a thread of the pool blocks, and so does a removal. */
import { execFileSync } from 'node:child_process';
import fs, { writeSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const [target = ''] = process.argv.slice(2);
const forever = new Int32Array(new SharedArrayBuffer(4));
fs.rmSync = () => {
  Atomics.wait(forever, 0, 0);
};
syncBuiltinESMExports();
execFileSync('mkfifo', [`${target}.pipe`]);

const { exit } = await import('../../../../src/files/thread-work.ts');
const { writeWhole } = await import('../../../../src/store/sqlite/file/whole-file.ts');
process.on('SIGTERM', () => exit(143));
await writeWhole(target, true, async ({ file }) => {
  await file.appendFile('half of it');
  writeSync(1, 'written\n');
  // Hangs: the pipe has no writer.
  await fs.promises.open(`${target}.pipe`);
});
