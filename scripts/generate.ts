/** Writes all generated files. With --check it writes nothing and exits 1 when one of them is out of date. */
import { readdir } from 'node:fs/promises';

const generators = (await readdir(import.meta.dirname)).filter((name) =>
  /^generate-.+\.ts$/.test(name),
);
// One after the other, so that their messages do not mix.
for (const name of generators.toSorted()) await import(`./${name}`);
