import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { copyWithBug } from '../bug.ts';

const LAST = "  { file: '0005-configuration.sql', compatibleFrom: 1 },\n";
/** Statements that a migration may make while workers of the previous version run. */
const MADE_UP = `
ALTER TABLE evalwatch.project ADD COLUMN note text;
ALTER TABLE evalwatch.record ADD COLUMN weight integer NOT NULL DEFAULT 1;
CREATE TABLE evalwatch.made_up (project_key bigint PRIMARY KEY, text text NOT NULL);
INSERT INTO evalwatch.made_up SELECT project_key, id FROM evalwatch.project;
CREATE INDEX transition_record ON evalwatch.transition (record_id);
`;

/** Copies the sources and adds a made-up migration; `await using` removes the copy. */
export async function copyOfNextVersion() {
  const copy = await copyWithBug({
    file: 'store/postgres/sql/migrate.ts',
    replace: [[LAST, `${LAST}  { file: '0006-made-up.sql', compatibleFrom: 1 },\n`]],
  });
  await writeFile(join(copy.source, 'store/postgres/migrations/0006-made-up.sql'), MADE_UP);
  return { ...copy, schemaVersion: 6 };
}
