import { describe, expect, it } from 'vitest';
import { readErrorInfo } from '../../../src/client/error-info.ts';
import { connectionError } from '../../../src/client/errors.ts';
import { bodyOf } from '../../../src/client/request.ts';
import { createScrub } from '../../../src/client/secrets.ts';
import type { ObservedRecord } from '../../../src/domain/record.ts';
import { ApiError } from '../../../src/monitor/errors.ts';
import { readListing } from '../../support/read-listing.ts';
import { KEY_FORMS } from '../../support/written-keys.ts';

const KEY = 'T3st"key/\\w+i th&<\'all>%41=';
const scrub = createScrub([KEY]);

async function read(fields: object): Promise<Partial<ObservedRecord>> {
  const items = [{ id: 'p1', status: 'PENDING', ...fields }];
  const listing = await readListing(Buffer.from(JSON.stringify(items)), 'prompt', scrub);
  return listing.records.get('p1') ?? {};
}

function info(fields: object) {
  const body = Buffer.from(JSON.stringify({ error_info: fields }));
  return readErrorInfo(body, scrub)?.errorInfo;
}

function details(statusCode: number, headers: Record<string, string>, body: string) {
  const head = { statusCode, headers };
  try {
    const answer = { head, body: Buffer.from(body) };
    bodyOf(answer, false, scrub, 0);
  } catch (error) {
    if (error instanceof ApiError) return error.details;
    throw error;
  }
  return undefined;
}

type Kept = string | null | undefined;

/** Fields of responses, with the maximum length and a function that returns what is kept of a text. */
const FIELDS: Readonly<
  Record<string, readonly [max: number, keep: (text: string) => Kept | Promise<Kept>]>
> = {
  name: [1024, async (text) => (await read({ name: text })).name],
  timestamp: [1024, async (text) => (await read({ timestamp: text })).timestamp],
  experiment: [512, async (text) => (await read({ experiment: text })).experiment],
  status: [256, async (text) => (await read({ status: text })).statusRaw],
  error_id: [1024, (text) => info({ error_id: text })?.error_id],
  error_msg: [8192, (text) => info({ error_msg: text })?.error_msg],
  'body of a 500': [2048, (text) => details(500, {}, text)?.detail],
  'detail of a 422': [2048, (text) => details(422, {}, JSON.stringify({ detail: text }))?.detail],
  location: [1024, (text) => details(302, { location: text }, '')?.location],
  'message of a connection error': [300, (text) => connectionError(new Error(text), scrub).message],
};

describe.each(Object.entries(FIELDS))('an API key in the %s', (_, [max, keep]) => {
  it.each(Object.entries(KEY_FORMS))('is redacted when written %s', async (__, write) => {
    const written = write(KEY);
    const kept = await keep(`text ${written} text`);
    expect(kept).toContain('[redacted]');
    expect(hasPieceOf(kept, written)).toBe(false);
  });

  it.each(Object.entries(KEY_FORMS))(
    'leaves no readable piece when written %s and split by the length limit',
    async (__, write) => {
      const written = write(KEY);
      for (const before of [written.length - 1, 20, 6]) {
        const kept = await keep(
          '~'.repeat(Math.max(0, max - before)) + written.repeat(3) + '~'.repeat(9000),
        );
        expect(kept).toMatch(/~|\[redacted\]/);
        expect(hasPieceOf(kept, written)).toBe(false);
      }
    },
  );
});

/** Whether a piece of a written key can be read, as it is or as JSON writes it. */
function hasPieceOf(kept: string | null | undefined, written: string): boolean {
  const length = Math.min(12, written.length - 4);
  return [written, JSON.stringify(written).slice(1, -1)].some((text) => {
    for (let at = 0; at + length <= text.length; at += 1) {
      if (kept?.includes(text.slice(at, at + length))) return true;
    }
    return false;
  });
}

describe('an item', () => {
  it.each(Object.entries(KEY_FORMS))(
    'is invalid if its id contains an API key written %s',
    async (_, write) => {
      const items = [
        { id: 'sound', status: 'PENDING' },
        { id: `id ${write(KEY)}`, status: 'PENDING' },
      ];
      const body = Buffer.from(JSON.stringify(items));
      const { records, anomalies } = await readListing(body, 'prompt', scrub);
      expect([...records.keys()]).toEqual(['sound']);
      expect(JSON.stringify(anomalies)).toContain('invalid');
    },
  );
});
