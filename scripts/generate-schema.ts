/** Writes config/evalwatch.schema.json; with --check only tells, by its exit code, whether it is up to date. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { configJsonSchema } from '../src/config/json-schema.ts';

const file = join(import.meta.dirname, '../config/evalwatch.schema.json');
const wanted = `${JSON.stringify(configJsonSchema(), null, 2)}\n`;

if (!process.argv.includes('--check')) {
  await writeFile(file, wanted);
} else if ((await readFile(file, 'utf8').catch(() => '')) !== wanted) {
  console.error('config/evalwatch.schema.json is out of date: run node scripts/generate-schema.ts');
  process.exitCode = 1;
}
