/**
 * Writes the address of the repository, from package.json, into the files that name it and are not generated. Runs before
 * the generators that copy these files. With --check it writes nothing and exits 1 when a file names another address.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeOrCheck } from './generated-file.ts';
import { REPOSITORY, withAddress } from './repository.ts';

const root = join(import.meta.dirname, '..');
const NAMING = ['package.json', 'README.md', 'SECURITY.md', 'config/prometheus/*.yml'];

for (const file of globSync(NAMING, { cwd: root }).toSorted()) {
  const text = readFileSync(join(root, file), 'utf8');
  await writeOrCheck(file, withAddress(text, REPOSITORY));
}
