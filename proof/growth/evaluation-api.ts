import { causeOf } from '../../src/domain/cause.ts';
import { statusOf } from '../../src/domain/status.ts';
import { readErrorInfo } from '../../src/evaluation-api/error-info.ts';
import { connectionError } from '../../src/evaluation-api/errors.ts';
import { parseItems, parseJson } from '../../src/evaluation-api/listing/json.ts';
import { etagOf, readReply } from '../../src/evaluation-api/sending/reply.ts';
import { parseRetryAfter } from '../../src/evaluation-api/sending/retry-after.ts';
import { createScrub } from '../../src/evaluation-api/scrub.ts';
import { cleanText, cutCodePoints, cutUtf8 } from '../../src/evaluation-api/text.ts';
import { describeItem, describeUnusable } from '../../src/evaluation-api/unusable.ts';
import { ApiError } from '../../src/monitor/errors.ts';
import type { TextFunction } from './text-function.ts';
import { readListing } from '../../test/support/read-listing.ts';

const scrub = createScrub(['\\\\an\\api"key%41 of+the &lt;proof', 'sk-live-7919/+%&;']);

const bodyOf = (value: unknown) => Buffer.from(JSON.stringify(value));

async function list(body: Buffer, pieceBytes = body.length): Promise<void> {
  await readListing(body, 'prompt', scrub, pieceBytes);
}

function single(body: Buffer): void {
  readErrorInfo(body, scrub);
}

function reply(statusCode: number, headers: Record<string, string>, body: Buffer): void {
  readReply({ head: { statusCode, headers }, body }, { conditional: false, scrub, now: 0 });
}

/** Functions that read responses, whole and field by field. */
export const evaluationApi: readonly TextFunction[] = [
  { name: 'domain/status.ts statusOf', call: statusOf },
  { name: 'evaluation-api/scrub.ts createScrub', call: scrub },
  {
    name: 'evaluation-api/text.ts cutCodePoints',
    call: (text) => cutCodePoints(text, text.length / 2),
  },
  {
    name: 'evaluation-api/text.ts cutUtf8',
    call: (text) => cutUtf8(text.toWellFormed(), text.length),
  },
  {
    name: 'evaluation-api/text.ts cleanText',
    call: (text) => cleanText(text, text.length / 2, scrub),
  },
  {
    name: 'evaluation-api/listing/json.ts parseJson',
    call: (text) => parseJson(Buffer.from(text), scrub),
  },
  {
    name: 'evaluation-api/listing/json.ts parseItems',
    call: (text) => parseItems(Buffer.from(`[${text}]`), scrub),
  },
  {
    name: 'evaluation-api/listing/item-scanner.ts createItemScanner, of a whole body',
    call: (text) => list(Buffer.from(text)),
  },
  {
    name: 'evaluation-api/listing/item-collector.ts createItemCollector, of tiny pieces',
    call: (text) => list(Buffer.from(`[${text}]`), 16),
  },
  {
    name: 'evaluation-api/listing/listing-stream.ts createListingStream, of items',
    call: (text) => list(Buffer.from(`[${text}]`)),
  },
  {
    name: 'evaluation-api/listing/listing.ts createListingReader, of each field',
    call: async (text) => {
      const item = { id: 'p', status: text, name: text, timestamp: text };
      await list(bodyOf([item, { id: text, status: 'PENDING' }]));
    },
  },
  {
    name: 'evaluation-api/error-info.ts readErrorInfo',
    call: (text) => single(Buffer.from(text)),
  },
  {
    name: 'evaluation-api/error-info.ts readErrorInfo, of each field',
    call: (text) => single(bodyOf({ error_info: { error_id: text, error_msg: text } })),
  },
  {
    name: 'evaluation-api/unusable.ts describeItem',
    call: (text) => describeItem({ [text]: text }, { index: 0, isIdUsable: false }, scrub),
  },
  {
    name: 'evaluation-api/unusable.ts describeUnusable',
    call: (text) => {
      const body = { headers: { 'content-type': text }, beginning: Buffer.from(text) };
      const error = new ApiError('invalid_response', '');
      describeUnusable(error, { ...body, wanted: 'array' }, scrub);
    },
  },
  {
    name: 'evaluation-api/errors.ts connectionError',
    call: (text) => connectionError(new Error(text), scrub),
  },
  {
    name: 'evaluation-api/sending/reply.ts readReply, of a detail',
    call: (text) => reply(422, {}, bodyOf({ detail: text })),
  },
  {
    name: 'evaluation-api/sending/reply.ts readReply, of the text of an error',
    call: (text) => reply(500, {}, Buffer.from(text)),
  },
  {
    name: 'evaluation-api/sending/reply.ts readReply, of a location',
    call: (text) => reply(302, { location: text }, bodyOf('')),
  },
  {
    name: 'evaluation-api/sending/reply.ts etagOf',
    call: (text) => etagOf({ statusCode: 200, headers: { etag: text } }),
  },
  {
    name: 'evaluation-api/sending/retry-after.ts parseRetryAfter',
    call: (text) => parseRetryAfter(text, 0),
  },
  {
    name: 'domain/cause.ts causeOf',
    call: (text) => causeOf({ error_id: text, error_msg: text }),
  },
];
