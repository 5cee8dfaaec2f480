import { createHash } from 'node:crypto';
import { createGunzip } from 'node:zlib';
import { Pool } from 'undici';
import {
  API_KEY,
  CONCURRENCY,
  listingPath,
  type OpenContender,
  type Outcome,
} from './contender.ts';

/** Consumes the decompressed bytes of one listing and returns the outcome at the end. */
interface Sink {
  readonly write: (chunk: Buffer) => void;
  readonly end: () => Outcome;
}

/** Downloads the bytes and discards them. */
export const download = floor(() => {
  let bytes = 0;
  return {
    write: (chunk) => {
      bytes += chunk.length;
    },
    end: () => ({ bytes }),
  };
});

/** Downloads and hashes the bytes. */
export const sha256 = floor(() => {
  const hash = createHash('sha256');
  return {
    write: (chunk) => hash.update(chunk),
    end: () => ({ digest: hash.digest('base64') }),
  };
});

/** Downloads and parses the bytes. */
export const parse = floor(() =>
  collecting((body) => ({ prompts: (JSON.parse(body.toString()) as object[]).length })),
);

/** Sends conditional requests, which are answered 304 from the second round on. */
export const notModified: OpenContender = async ({ baseUrl, projects }) => {
  const pool = openPool(baseUrl);
  const etags = new Map<string, string>();
  return {
    poll: async () => {
      const statuses = await Promise.all(
        projects.map(async (project) => {
          const etag = etags.get(project);
          const response = await pool.request({
            path: listingPath(baseUrl, project),
            method: 'GET',
            headers: { ...HEADERS, ...(etag !== undefined && { 'if-none-match': etag }) },
          });
          await response.body.dump({ limit: Number.POSITIVE_INFINITY });
          if (response.statusCode === 200) etags.set(project, String(response.headers['etag']));
          return response.statusCode;
        }),
      );
      return { unchanged: statuses.filter((status) => status === 304).length };
    },
    close: () => pool.destroy(),
  };
};

const HEADERS = { accept: 'application/json', 'x-api-key': API_KEY };

function openPool(baseUrl: string): Pool {
  return new Pool(new URL(baseUrl).origin, { connections: CONCURRENCY });
}

/** Creates a contender that needs only the bodies, by undici's `dispatch`, the cheapest way. */
export function floor(createSink: () => Sink): OpenContender {
  return async ({ baseUrl, projects }) => {
    const pool = openPool(baseUrl);
    return {
      poll: async () => {
        const outcomes = await Promise.all(
          projects.map((project) => get(pool, listingPath(baseUrl, project), createSink())),
        );
        return outcomes.length === 1 ? (outcomes[0] ?? {}) : sum(outcomes);
      },
      close: () => pool.destroy(),
    };
  };
}

function get(pool: Pool, path: string, sink: Sink): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
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

export function collecting(interpret: (body: Buffer) => Outcome): Sink {
  const chunks: Buffer[] = [];
  return {
    write: (chunk) => chunks.push(chunk),
    end: () => interpret(Buffer.concat(chunks)),
  };
}

/** Adds up the numbers of each name; other values are dropped. */
function sum(outcomes: readonly Outcome[]): Outcome {
  const total: Record<string, number> = {};
  for (const [name, value] of outcomes.flatMap((outcome) => Object.entries(outcome))) {
    if (typeof value === 'number') total[name] = (total[name] ?? 0) + value;
  }
  return total;
}
