import type * as ListingRoom from '../../src/evaluation-api/listing/listing.ts';
import type { Scrub } from '../../src/domain/scrub.ts';
import type { Kind } from '../../src/domain/status.ts';
import type * as ErrorsRoom from '../../src/monitor/errors.ts';
import type { ListingAnswer, ListingBasis, ListOptions } from '../../src/monitor/ports/service.ts';
import { openListingStreams } from '../listing-streams.ts';
import type { Step } from './bodies.ts';

interface Reading extends Pick<ListOptions, 'previous' | 'allowDifference'> {
  readonly step: Step;
  readonly kind: Kind;
  readonly scrub: Scrub;
}

/** Rejects with an `ApiError`. */
export type Reader = (reading: Reading) => Promise<ListingAnswer>;

/** Returns the daemon's reader. */
export async function byDifference(
  source: string,
  count: (how: 'unchanged' | 'partly' | 'whole' | 'twice' | 'failed') => void,
): Promise<Reader> {
  const startStream = await openListingStreams(source);
  const { signal } = new AbortController();

  async function read(reading: Reading): Promise<ListingAnswer> {
    const { step, ...options } = reading;
    const stream = startStream(options);
    for (const piece of cut(step)) await stream.push(piece);
    const answer = await stream.finish('"x"', signal);
    if (answer === undefined) {
      count('twice');
      return await read({ ...reading, allowDifference: false });
    }
    const isPart = !answer.unchanged && answer.vanished !== undefined;
    count(answer.unchanged ? 'unchanged' : isPart ? 'partly' : 'whole');
    return answer;
  }

  return async (reading) => {
    try {
      return await read(reading);
    } catch (error) {
      count('failed');
      throw error;
    }
  };
}

interface WholeBasis extends ListingBasis {
  readonly digest: string;
}

/** Returns a reader that parses each changed body whole. */
export function naively({
  ApiError,
  createListingReader,
}: typeof ErrorsRoom & typeof ListingRoom): Reader {
  return async ({ step, kind, previous, scrub }) => {
    const digest = step.body.toString('latin1');
    const basis: WholeBasis = { digest };
    if (previous !== undefined && 'digest' in previous && digest === previous.digest) {
      return { unchanged: true, full: true, basis };
    }
    const items = parse(step.body);
    if (items === undefined) throw new ApiError('invalid_response', 'no list');
    const reader = createListingReader(kind, scrub);
    for (const [index, item] of items.entries()) reader.add(item, index);
    const listing = reader.listing();
    if (items.length > 0 && listing.records.size === 0) {
      throw new ApiError('invalid_response', 'useless', { anomalies: listing.anomalies });
    }
    return { unchanged: false, listing, size: listing.records.size, recordBytes: 0, basis };
  };
}

/** Parses a list of at most 64 levels; undefined if it is none. */
function parse(body: Buffer): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return Array.isArray(value) && depthOf(value) <= 64 ? value : undefined;
  } catch {
    return undefined;
  }
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function cut({ body, cuts }: Step): readonly Buffer[] {
  const places = cuts.map((place) => place % (body.length + 1)).toSorted((a, b) => a - b);
  return [0, ...places].map((from, index) => body.subarray(from, places[index] ?? body.length));
}
