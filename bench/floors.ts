/** The minimum for parts of a poll, and the script that one would write instead. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import type { Pool } from 'undici';
import type { OpenContender } from './measure.ts';
import { API_KEY, CONCURRENCY } from './processes.ts';

interface Item {
  readonly id: string;
  readonly status: string;
  readonly name: string;
  readonly timestamp: string;
}

/** Consumes the decompressed bytes of one listing and returns the number of prompts at the end, if it knows it. */
interface Sink {
  readonly write: (chunk: Buffer) => void;
  readonly end: () => number | undefined;
}

const HEADERS = {
  accept: 'application/json',
  'x-api-key': API_KEY,
  'accept-encoding': 'gzip',
};

/** Downloads, parses and inserts the raw items into an empty table, in one transaction as durable as the daemon's. */
const insert: OpenContender = async (task) => {
  const { default: Database } = await import('better-sqlite3');
  const db = new Database(join(task.directory, 'floor.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(`CREATE TABLE prompt (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, name TEXT, timestamp TEXT, since INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`);
  const row = db.prepare('INSERT INTO prompt VALUES (?, ?, ?, ?, ?)');
  const insertAll = db.transaction((items: readonly Item[]) => {
    const now = Date.now();
    for (const { id, status, name, timestamp } of items) row.run(id, status, name, timestamp, now);
  });
  const polling = await floor(() => parsing((items) => insertAll.immediate(items)))(task);
  return {
    poll: () => polling.poll(),
    close: async () => {
      await polling.close();
      db.close();
    },
  };
};

/** Script that a user of Node would write: fetch, parse the JSON, upsert each row, in one transaction per project. */
const node: OpenContender = async ({ baseUrl, projects, directory }) => {
  const { default: Database } = await import('better-sqlite3');
  const db = new Database(join(directory, 'peer.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(`CREATE TABLE prompt (
    project TEXT, id TEXT, name TEXT, status TEXT, changed_at INTEGER, PRIMARY KEY (project, id)
  )`);
  const upsert = db.prepare(
    `INSERT INTO prompt VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (project, id) DO UPDATE SET status = excluded.status, changed_at = excluded.changed_at
     WHERE status <> excluded.status`,
  );
  const store = db.transaction((project: string, items: readonly Item[]) => {
    const now = Date.now();
    for (const { id, name, status } of items) upsert.run(project, id, name, status, now);
  });
  return {
    poll: async () => {
      const waiting = projects.values();
      let prompts = 0;
      const work = async () => {
        for (const project of waiting) {
          const response = await fetch(`${baseUrl}/v2/projects/${project}/prompts/`, {
            headers: { 'X-API-Key': API_KEY },
          });
          if (!response.ok) throw new Error(`the service answered ${response.status}`);
          const items = (await response.json()) as Item[];
          store(project, items);
          prompts += items.length;
        }
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, work));
      return prompts;
    },
    close: async () => {
      db.close();
    },
  };
};

export const CONTENDERS: Readonly<Record<string, OpenContender>> = {
  // The second and all further requests are answered 304.
  'not modified': floor(discarding, new Map()),
  download: floor(discarding),
  sha256: floor(() => {
    const hash = createHash('sha256');
    return {
      write: (chunk) => hash.update(chunk),
      end: () => {
        hash.digest();
        return undefined;
      },
    };
  }),
  parse: floor(() => parsing(() => {})),
  insert,
  node,
};

/**
 * Creates a contender that needs only the bodies, by undici's `dispatch`, the cheapest way.
 * @param etags those of the latest answers, by path, if it sends them
 */
function floor(createSink: () => Sink, etags?: Map<string, string>): OpenContender {
  return async ({ baseUrl, projects }) => {
    const { Pool: UndiciPool } = await import('undici');
    const { origin, pathname } = new URL(baseUrl);
    const pool = new UndiciPool(origin, { connections: CONCURRENCY });
    return {
      poll: async () => {
        const found = await Promise.all(
          projects.map((project) =>
            get(pool, `${pathname}/v2/projects/${project}/prompts/`, createSink(), etags),
          ),
        );
        return found.reduce((sum, prompts) => sum && prompts && sum + prompts);
      },
      close: () => pool.destroy(),
    };
  };
}

function discarding(): Sink {
  return { write: () => {}, end: () => undefined };
}

function parsing(use: (items: readonly Item[]) => void): Sink {
  const chunks: Buffer[] = [];
  return {
    write: (chunk) => chunks.push(chunk),
    end: () => {
      const items = JSON.parse(Buffer.concat(chunks).toString()) as Item[];
      use(items);
      return items.length;
    },
  };
}

function get(pool: Pool, path: string, sink: Sink, etags?: Map<string, string>) {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const finish = () => {
    try {
      resolve(sink.end());
    } catch (error) {
      reject(error);
    }
  };
  let gunzip: ReturnType<typeof createGunzip> | undefined;
  const etag = etags?.get(path);
  const conditions = { ...(etag !== undefined && { 'if-none-match': etag }) };
  pool.dispatch(
    { path, method: 'GET', headers: { ...HEADERS, ...conditions } },
    {
      onRequestStart: () => {},
      onResponseStart: (_, statusCode, headers) => {
        if (statusCode !== (etag === undefined ? 200 : 304))
          throw new Error(`the service answered ${statusCode}`);
        if (headers['etag'] !== undefined) etags?.set(path, String(headers['etag']));
        if (headers['content-encoding'] !== 'gzip') return;
        gunzip = createGunzip().on('data', sink.write).on('end', finish).on('error', reject);
      },
      onResponseData: (_, chunk) => {
        if (gunzip === undefined) sink.write(chunk);
        else gunzip.write(chunk);
      },
      onResponseEnd: () => {
        if (gunzip === undefined) finish();
        else gunzip.end();
      },
      onResponseError: (_, error) => reject(error),
    },
  );
  return promise;
}
