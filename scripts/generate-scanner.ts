/**
 * Compiles assembly/item-scanner.ts to src/evaluation-api/listing/item-scanner.wasm. With --check it writes nothing and
 * exits 1 when the file is out of date.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../test/support/temporary.ts';

const root = join(import.meta.dirname, '..');
const file = join(root, 'src/evaluation-api/listing/item-scanner.wasm');
// The compiler runs in a separate process, because its types change those of all arrays in this program.
const compiler = fileURLToPath(import.meta.resolve('assemblyscript/bin/asc.js'));
const PAGES = '14';

await using directory = await temporaryDirectory();
const compiled = join(directory.path, 'item-scanner.wasm');
const options = [
  'assembly/item-scanner.ts',
  `--outFile=${compiled}`,
  `--baseDir=${root}`,
  '--runtime=stub',
  '--enable=simd',
  // The memory has a fixed size; a body of any size is scanned in blocks.
  `--initialMemory=${PAGES}`,
  `--maximumMemory=${PAGES}`,
  '-O3',
  '--noAssert',
];
await promisify(execFile)(process.execPath, [compiler, ...options], { cwd: root });

const wanted = await readFile(compiled);
if (!process.argv.includes('--check')) {
  await writeFile(file, wanted);
} else if (!(await readFile(file).catch(() => Buffer.alloc(0))).equals(wanted)) {
  console.error('item-scanner.wasm is out of date: npm run generate');
  process.exitCode = 1;
}
