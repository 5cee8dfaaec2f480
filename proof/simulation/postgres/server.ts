import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { PGlite } from '@electric-sql/pglite';
import { Client } from 'pg';
import type { StoreReader } from '../../../src/monitor/ports/store.ts';
import type { Statement } from '../../../src/store/postgres/database.ts';
import type * as ReaderRoom from '../../../src/store/postgres/postgres-reader.ts';
import type * as ServersRoom from '../../../src/store/postgres/servers.ts';
import type * as MigrateRoom from '../../../src/store/postgres/sql/migrate.ts';
import type * as UrlRoom from '../../../src/store/postgres/url.ts';
import { START } from '../machine.ts';

/** A row of `evalwatch.project`. */
interface StoredProject {
  readonly id: string;
  readonly token: string;
  readonly owner: string | null;
  /** Null while it is configured. */
  readonly removed_at: number | null;
}

/**
 * PostgreSQL in this process. It has one connection, and executes one statement after the other. No statement takes virtual
 * time or a turn of the event loop.
 */
export interface Server extends AsyncDisposable {
  /** Executes a statement at this time of the server, epoch ms. @throws {DatabaseError} */
  run(statement: Statement, values: readonly unknown[], nowMs: number): Promise<readonly unknown[]>;
  projects(): Promise<readonly StoredProject[]>;
  /** Returns the project of a failure. */
  projectOf(transitionId: number): Promise<StoredProject | undefined>;
  openReader(): StoreReader;
  /** Copies everything that is stored now. Returns the function that undoes everything from then on. */
  save(): () => Promise<void>;
}

const URL_OF_SERVER = 'postgres://postgres@simulated/template1?sslmode=disable';

const NOW = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms';

/** Made for the first run of this process, because that takes seconds. */
let engine: Promise<PGlite> | undefined;

/** Opens the server with empty tables of these sources, in place of an earlier one. */
export async function openServer(source: string): Promise<Server> {
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, 'store/postgres', file))) as Room;
  const { migrate } = await load<typeof MigrateRoom>('sql/migrate.ts');
  const { PostgresReader } = await load<typeof ReaderRoom>('postgres-reader.ts');
  const { sessionConfig } = await load<typeof ServersRoom>('servers.ts');
  const { readUrl } = await load<typeof UrlRoom>('url.ts');
  engine ??= PGlite.create();
  const postgres = await engine;
  const time = { ms: 0 };

  const settings = await readUrl(URL_OF_SERVER);
  const [address] = settings.servers;
  if (address === undefined) throw new Error('no server');
  const client = new Client({
    ...sessionConfig(settings, address, () =>
      createWire((sent) => answer(postgres, sent, time.ms)),
    ),
    // They count real time.
    statement_timeout: 0,
    idle_in_transaction_session_timeout: 0,
  });
  await client.connect();

  /** Names of statements by text. */
  const names = new Map<string, string>();

  /** Executes a statement, with a kept plan, because making one takes longer. */
  async function query<Row>({ text }: Statement, values: readonly unknown[] = []) {
    const name = names.get(text) ?? `statement_${names.size}`;
    names.set(text, name);
    const config = { name, text, values: [...values] };
    return (await client.query<Row & object>(config)).rows as readonly Row[];
  }

  /** Runs statements without values, one after the other. */
  const runAll = async (text: string) => void (await client.query(text));

  await runAll('DISCARD ALL');
  await runAll('SELECT setseed(0)');
  await runAll('DROP SCHEMA IF EXISTS evalwatch CASCADE');
  await migrate({
    query,
    attempt: () => Promise.reject(new Error('a migration makes no attempts')),
    transaction: async (work) => {
      await runAll('BEGIN');
      const result = await work(async <Row>(text: string, values: readonly unknown[] = []) =>
        values.length > 0 ? await query<Row>({ text }, values) : (await runAll(text), await none()),
      );
      await runAll('COMMIT');
      return result;
    },
    keepPlans: () => {},
    close: async () => {},
  });
  time.ms = START;
  const [clock] = await query<{ readonly ms: number }>({ text: NOW });
  if (clock?.ms !== START) throw new Error(`PostgreSQL has a clock of its own: ${clock?.ms}`);
  const list = async (text: string) =>
    (await query<{ readonly name: string }>({ text })).map(({ name }) => `evalwatch.${name}`);
  const tables = await list(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'evalwatch'",
  );
  const sequences = await list(
    "SELECT sequencename AS name FROM pg_sequences WHERE schemaname = 'evalwatch'",
  );

  return {
    run: (statement, values, nowMs) => {
      time.ms = nowMs;
      return query(statement, values);
    },
    projects: () => query({ text: 'SELECT id, token, owner, removed_at FROM evalwatch.project' }),
    projectOf: async (transitionId) => {
      const text = `SELECT p.id, p.token, p.owner, p.removed_at FROM evalwatch.project p
        JOIN evalwatch.failure f USING (project_key) WHERE f.transition_id = $1`;
      return (await query<StoredProject>({ text }, [transitionId]))[0];
    },
    openReader: () => {
      const sleep = () => Promise.reject(new Error('no statement takes time here'));
      return new PostgresReader({ query, close: async () => {} }, { sleep });
    },
    save: () => {
      const rows = tables.map((name) =>
        query<{ rows: unknown }>({
          text: `SELECT coalesce(array_agg(r::text), '{}') AS rows FROM ${name} r`,
        }),
      );
      const places = sequences.map((name) =>
        query<{ last_value: number; is_called: boolean }>({
          text: `SELECT last_value, is_called FROM ${name}`,
        }),
      );
      return async () => {
        await runAll(`TRUNCATE ${tables.join()}`);
        for (const [index, name] of tables.entries()) {
          const [saved] = (await rows[index]) ?? [];
          const text = `INSERT INTO ${name} SELECT (r::${name}).* FROM unnest($1::text[]) r`;
          await query({ text }, [saved?.rows]);
        }
        for (const [index, name] of sequences.entries()) {
          const [place] = (await places[index]) ?? [];
          await query({ text: 'SELECT setval($1, $2, $3)' }, [
            name,
            place?.last_value,
            place?.is_called,
          ]);
        }
      };
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

async function none(): Promise<readonly never[]> {
  return [];
}

/**
 * Lets PostgreSQL answer a message at this time of its own. Its program calls these two functions for the time and for its
 * timers, and takes no others. A timer would end a statement, or report statistics, in real time.
 */
function answer(postgres: PGlite, sent: Buffer, nowMs: number): Buffer {
  const { setTimeout } = globalThis;
  const { now } = Date;
  globalThis.setTimeout = (() => undefined) as unknown as typeof setTimeout;
  Date.now = () => nowMs;
  try {
    return Buffer.from(postgres.execProtocolRawSync(sent));
  } finally {
    globalThis.setTimeout = setTimeout;
    Date.now = now;
  }
}

/** Creates a socket of which the other end answers at once. */
function createWire(answerTo: (sent: Buffer) => Buffer) {
  const give = (sent: Buffer, done: () => void) => {
    const bytes = answerTo(sent);
    if (bytes.length > 0) wire.push(bytes);
    done();
  };
  const wire = new Duplex({
    read: () => {},
    write: (sent: Buffer, _, done) => give(sent, done),
    writev: (pieces, done) => give(Buffer.concat(pieces.map(({ chunk }) => chunk as Buffer)), done),
  });
  const ignore = () => wire;
  const connect = () => process.nextTick(() => wire.emit('connect'));
  return Object.assign(wire, {
    connect,
    setNoDelay: ignore,
    setKeepAlive: ignore,
    ref: ignore,
    unref: ignore,
  }) as never;
}
