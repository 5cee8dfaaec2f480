/** Writes the section First look of each runbook. With --check it writes nothing and exits 1 when one is out of date. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeOrCheck } from './generated-file.ts';
import { withFirstLook } from './runbooks/first-look.ts';

const RUNBOOKS = 'docs/runbooks';

for (const file of (await readdir(join(import.meta.dirname, '..', RUNBOOKS))).toSorted()) {
  const path = `${RUNBOOKS}/${file}`;
  const text = await readFile(join(import.meta.dirname, '..', path), 'utf8');
  await writeOrCheck(path, withFirstLook(text));
}
