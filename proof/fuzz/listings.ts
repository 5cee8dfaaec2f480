import { join } from 'node:path';
import * as fc from 'fast-check';
import type * as ErrorInfoRoom from '../../src/evaluation-api/error-info.ts';
import { openListingStreams } from '../listing-streams.ts';
import type { Surface } from './surface.ts';
import { anyText } from '../../test/support/any-text.ts';

const KEY = 'an-api-key-of-the-fuzzer';
const scrub = (text: string) => text.replaceAll(KEY, '[redacted]');
const FOUR = new Set(['PENDING', 'RUNNING', 'COMPLETED', 'FAILED']);

const texts = fc.oneof(
  anyText({ maxLength: 12 }),
  fc.constantFrom('', '.', '..', 'p1', 'p2', '\ud800', 'a\udc00b', `x${KEY}y`, '__proto__', '\0'),
  fc.constantFrom('😀'.repeat(512), '😀'.repeat(513), 'x'.repeat(512), 'x'.repeat(513)),
);
const oddities = fc.oneof(
  fc.constantFrom(null, true, 0, 1e308, [], {}),
  fc.jsonValue({ maxDepth: 2 }),
);
const statuses = fc.oneof(
  fc.constantFrom('PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'failed', 'x'.repeat(257)),
  texts,
  oddities,
);
const items = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record(
      {
        id: fc.oneof({ weight: 9, arbitrary: texts }, oddities),
        status: statuses,
        name: fc.oneof(texts, oddities),
        timestamp: fc.oneof(texts, oddities),
        constructor: oddities,
      },
      { requiredKeys: [] },
    ),
  },
  oddities,
);
const lists = fc.array(items, { maxLength: 6 });

/** JSON in which some bytes were replaced. */
const damaged = fc
  .tuple(lists, fc.nat(), fc.nat({ max: 8 }), fc.uint8Array({ maxLength: 8 }))
  .map(([list, at, length, bytes]) => {
    const good = Buffer.from(JSON.stringify(list));
    const start = at % (good.length + 1);
    return Buffer.concat([good.subarray(0, start), bytes, good.subarray(start + length)]);
  });

/** Reads a listing in the simplest way, as a reference. */
function naively(list: readonly unknown[], kind: 'prompt' | 'dataset'): string {
  const records = new Map<string, string>();
  const present = new Set<string>();
  let complete = true;
  for (const item of list) {
    const { id, status } = (item ?? {}) as { id?: unknown; status?: unknown };
    const usable =
      typeof id === 'string' &&
      id !== '' &&
      Array.from(id).length <= 512 &&
      !/\p{Surrogate}/u.test(id) &&
      !id.includes(KEY);
    const none = kind === 'dataset' && (status === undefined || status === null);
    if (!usable) complete = false;
    else if (none) records.set(id, 'NONE');
    else if (typeof status !== 'string') present.add(id);
    else records.set(id, FOUR.has(status) ? status : 'UNKNOWN');
  }
  if (list.length > 0 && records.size === 0) return 'invalid_response';
  return shown(records, present, complete);
}

function shown(
  records: Iterable<readonly [string, string]>,
  present: Iterable<string>,
  complete: boolean,
): string {
  return JSON.stringify([written(records), written(present), complete]);
}

function written(list: Iterable<unknown>): readonly string[] {
  return Array.from(list, (each) => JSON.stringify(each)).toSorted();
}

/** Returns surfaces of listings (compared with a naive reader), damaged bytes and prompts. */
export async function listings(source: string): Promise<readonly Surface[]> {
  const startStream = await openListingStreams(source);
  const { readErrorInfo } = (await import(
    join(source, 'evaluation-api/error-info.ts')
  )) as typeof ErrorInfoRoom;

  const { signal } = new AbortController();

  async function read(body: Buffer, kind: 'prompt' | 'dataset'): Promise<string> {
    const basis = { previous: undefined, allowDifference: false };
    const stream = startStream({ kind, ...basis, scrub });
    try {
      await stream.push(body);
      const answer = await stream.finish(undefined, signal);
      if (answer?.unchanged !== false) throw new TypeError('a first listing is whole');
      const { records, idsWithoutStatus, complete } = answer.listing;
      const pairs = [...records].map(([id, { status }]) => [id, status] as const);
      return shown(pairs, idsWithoutStatus, complete);
    } catch (error) {
      return reasonOf(error);
    }
  }

  const kinds = fc.constantFrom('prompt' as const, 'dataset' as const);
  return [
    {
      name: 'wire items',
      property: fc.asyncProperty(lists, kinds, async (list, kind) => {
        const body = Buffer.from(JSON.stringify(list));
        const found = await read(body, kind);
        const expected = naively(JSON.parse(body.toString()) as unknown[], kind);
        if (found !== expected) throw new Error(`read ${found}, naively ${expected}`);
      }),
    },
    {
      name: 'damaged bytes',
      property: fc.asyncProperty(damaged, kinds, async (body, kind) => {
        await read(body, kind);
      }),
    },
    {
      name: 'single prompts',
      property: fc.property(
        fc.oneof(
          fc.record({ error_info: fc.oneof(items, errorInfos) }, { requiredKeys: [] }),
          oddities,
        ),
        (prompt) => {
          const body = Buffer.from(JSON.stringify(prompt) ?? '');
          try {
            const told = readErrorInfo(body, scrub);
            const message = told?.errorInfo.error_msg ?? '';
            if (Buffer.byteLength(message) > 8192) throw new TypeError('error_msg is too long');
            if (!message.isWellFormed()) throw new TypeError('error_msg is cut in a character');
          } catch (error) {
            reasonOf(error);
          }
        },
      ),
    },
  ];
}

const errorInfos = fc.record(
  {
    error_id: fc.oneof(texts, oddities),
    error_msg: fc.oneof(
      texts,
      oddities,
      fc.nat({ max: 4 }).map((n) => `${'x'.repeat(n)}${'😀'.repeat(2048)}`),
    ),
  },
  { requiredKeys: [] },
);

/** Returns the reason of an ApiError. @throws anything else */
function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'ApiError' && 'reason' in error) {
    return String(error.reason);
  }
  throw error;
}
