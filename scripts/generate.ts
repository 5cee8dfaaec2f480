/** Writes every file that is made from others; with --check only tells, by the exit code, which are out of date. */
import { readdir } from 'node:fs/promises';

const generators = (await readdir(import.meta.dirname)).filter((name) =>
  /^generate-.+\.ts$/.test(name),
);
// One after the other: each writes its own file, and tells of it.
for (const name of generators.toSorted()) await import(`./${name}`);
