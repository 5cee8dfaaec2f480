import { join } from 'node:path';
import { durability } from './durability.ts';
import { hostile } from './hostile.ts';
import { partialParsing } from './partial-parsing.ts';
import { protocol } from './protocol.ts';
import type { Row } from './row.ts';
import { simulation } from './simulation.ts';
import { web } from './web.ts';
import { workers } from './workers.ts';

/** Every row of docs/reliability.md. */
export const ROWS: readonly Row[] = [
  durability,
  simulation,
  hostile,
  partialParsing,
  web,
  protocol,
  workers,
];

/** Returns the rows that judge one of these files. */
export function rowsThatJudge(files: readonly string[]): readonly Row[] {
  return ROWS.filter((row) => {
    const planted = [row.bug ?? []].flat().map(({ file }) => join('src', file));
    const own = [`proof/${row.name}.ts`, `proof/${row.name}/`];
    const judged = [...row.judges, ...own, ...planted];
    return files.some((file) => judged.some((path) => file.startsWith(path)));
  });
}
