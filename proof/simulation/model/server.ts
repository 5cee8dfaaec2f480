import { join } from 'node:path';
import type { Statement } from '../../../src/store/postgres/database.ts';
import type * as KnownRoom from '../../../src/store/postgres/sql/known.ts';
import type * as CommitRoom from '../../../src/store/postgres/sql/poll-commit.ts';
import type * as ReadsRoom from '../../../src/store/postgres/reads.ts';
import type * as TextRoom from '../../../src/store/postgres/sql/text.ts';
import type { StatementServer } from '../postgres/statement-server.ts';
import { createStatements } from './statements.ts';
import { createTables, refusal, saveTables } from './tables.ts';

/** Texts that the server refuses, or that the client has to decode. */
// oxlint-disable-next-line no-control-regex -- it looks for them
const SPECIAL = /[\u0000\u0001]|\\u0001/;

/**
 * Creates a server that executes the statements of src/store/postgres in this process.
 * @param source directory of the sources with these statements
 */
export async function createModelServer(source: string): Promise<StatementServer> {
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, 'store/postgres', file))) as Room;
  const { knownQuery } = await load<typeof KnownRoom>('sql/known.ts');
  const { commitStatement } = await load<typeof CommitRoom>('sql/poll-commit.ts');
  const { fromStored } = await load<typeof TextRoom>('sql/text.ts');
  const { createReads } = await load<typeof ReadsRoom>('reads.ts');
  const tables = createTables();
  const find = createStatements(tables, { knownQuery, commitStatement });
  /** Whether a text has been stored that the client has to decode. */
  let hasEscapes = false;

  function check(value: unknown): void {
    if (Array.isArray(value)) value.forEach(check);
    if (typeof value !== 'string' || !SPECIAL.test(value)) return;
    if (value.includes('\u0000'))
      throw refusal('22021', 'invalid byte sequence for encoding "UTF8"');
    hasEscapes = true;
  }

  /** Decodes the texts as the client's parsers of types do. */
  function decode(value: unknown): unknown {
    if (typeof value === 'string') return fromStored(value);
    if (Array.isArray(value)) return value.map(decode);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, decode(one)]));
  }

  const run: StatementServer['run'] = (text, values, nowUs) => {
    const statement = find(text);
    values.forEach(check);
    const rows = statement(values, nowUs);
    return hasEscapes ? rows.map(decode) : rows;
  };

  return {
    run,
    projects: () => [...tables.project.values()],
    save: () => saveTables(tables),
    claimant: (id) => tables.failure.get(id)?.claimed_by ?? null,
    openReader: async () => {
      const query = async <Row>({ text }: Statement, values: readonly unknown[] = []) =>
        (await run(text, values, 0)) as readonly Row[];
      const sleep = () => Promise.reject(new Error('no statement of the model takes time'));
      return { ...createReads({ query }, { sleep }), close: async () => {} };
    },
    [Symbol.asyncDispose]: async () => {},
  };
}
