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

const HEADERS = { accept: 'application/json', 'x-api-key': API_KEY };

/** Sends conditional requests, which are answered 304 from the second round on. */
const notModified: OpenContender = async ({ baseUrl, projects }) => {
  const pool = await openPool(baseUrl);
  const etags = new Map<string, string>();
  const ask = async (project: string) => {
    const etag = etags.get(project);
    const response = await pool.request({
      path: listingPath(baseUrl, project),
      method: 'GET',
      headers: { ...HEADERS, ...(etag !== undefined && { 'if-none-match': etag }) },
    });
    await response.body.dump({ limit: Number.POSITIVE_INFINITY });
    if (response.statusCode !== (etag === undefined ? 200 : 304)) {
      throw new Error(`the service answered ${response.statusCode}`);
    }
    if (etag === undefined) etags.set(project, String(response.headers['etag']));
  };
  return {
    poll: async () => {
      await Promise.all(projects.map(ask));
      return undefined;
    },
    close: () => pool.destroy(),
  };
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
  'not modified': notModified,
  download: floor(() => ({ write: () => {}, end: () => undefined })),
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

/** Creates a contender that needs only the bodies, by undici's `dispatch`, the cheapest way. */
function floor(createSink: () => Sink): OpenContender {
  return async ({ baseUrl, projects }) => {
    const pool = await openPool(baseUrl);
    return {
      poll: async () => {
        const found = await Promise.all(
          projects.map((project) => get(pool, listingPath(baseUrl, project), createSink())),
        );
        return found.reduce((sum, prompts) => sum && prompts && sum + prompts);
      },
      close: () => pool.destroy(),
    };
  };
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

async function openPool(baseUrl: string): Promise<Pool> {
  const undici = await import('undici');
  return new undici.Pool(new URL(baseUrl).origin, { connections: CONCURRENCY });
}

function listingPath(baseUrl: string, project: string): string {
  return `${new URL(baseUrl).pathname}/v2/projects/${project}/prompts/`;
}

function get(pool: Pool, path: string, sink: Sink): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const finish = () => {
    try {
      resolve(sink.end());
    } catch (error) {
      reject(error);
    }
  };
  let gunzip: ReturnType<typeof createGunzip> | undefined;
  pool.dispatch(
    { path, method: 'GET', headers: { ...HEADERS, 'accept-encoding': 'gzip' } },
    {
      onRequestStart: () => {},
      onResponseStart: (_, statusCode, headers) => {
        if (statusCode !== 200) throw new Error(`the service answered ${statusCode}`);
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
