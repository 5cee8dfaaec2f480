/** Writes the file of the first argument, and needs 60 s. Replaces a file if the second argument is `replace`. */
import { writeSync } from 'node:fs';
import { writeWhole } from '../../../../src/store/sqlite/file/whole-file.ts';

const [target = '', mode] = process.argv.slice(2);
process.on('SIGTERM', () => process.exit(143));
await writeWhole(target, mode === 'replace', async ({ file }) => {
  await file.appendFile('half of it');
  writeSync(1, 'written\n');
  await new Promise((resolve) => setTimeout(resolve, 60_000));
});
