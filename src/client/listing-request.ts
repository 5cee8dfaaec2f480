import type { Endpoint } from '../monitor/events.ts';
import type { Kind } from '../domain/status.ts';
import { steps } from '../monitor/steps.ts';
import type { ListingAnswer, ListOptions } from '../monitor/ports/service.ts';
import { createItemScanner } from './listing/item-scanner.ts';
import { createListingStream, etagOfBasis, type ListingStream } from './listing/listing-stream.ts';
import type { RecordMemory } from './listing/record-memory.ts';
import { createTurnLimit } from './listing/turn-limit.ts';
import { etagOf, hasNextPage } from './sending/reply.ts';
import type { ApiRequest, Sender } from './sending/sender.ts';

/** Bytes of all bodies together that are scanned in one turn of the event loop: about a millisecond. */
const SCANNED_PER_TURN = 512 * 1024;

interface ListingRequestOptions {
  readonly send: Sender;
  /** Largest number of items in one listing. */
  readonly maxItems: number;
  readonly memory: RecordMemory;
}

interface ListingRequest
  extends
    Pick<ListOptions, 'previous' | 'revalidate' | 'allowDifference' | 'signal'>,
    Pick<ApiRequest<unknown>, 'path' | 'key' | 'requestClass'> {
  readonly kind: Kind;
  readonly endpoint: Endpoint;
  /** Called when a request gets its slot. */
  readonly onStart: () => void;
  /** Called when an answer has a `Link` to a next page. */
  readonly onNextPage: () => void;
}

/**
 * Creates a function that requests a listing and reads it as it arrives. If what has changed cannot be told, it requests the
 * listing once more to parse all of it (docs/specification.md#reading-listings).
 */
export function createListingRequest(
  options: ListingRequestOptions,
): (request: ListingRequest) => Promise<ListingAnswer> {
  const { send, maxItems, memory } = options;
  const startScan = createItemScanner(maxItems);
  const turn = createTurnLimit(SCANNED_PER_TURN);
  let last = 0;

  return async function request(wanted): Promise<ListingAnswer> {
    const { kind, endpoint, path, key, previous, revalidate, allowDifference } = wanted;
    const { requestClass, signal, onStart } = wanted;
    last += 1;
    const basis = { previous, allowDifference };
    const rank = last;
    let stream: ListingStream | undefined;
    const records = memory.readListing();
    // Opened with the first piece, as many answers are a 304 without a body.
    const opened = () => {
      stream ??= createListingStream({
        kind,
        ...basis,
        scrub: key.scrub,
        startScan,
        steps,
        rank,
        records,
      });
      return stream;
    };
    let answer: ListingAnswer | undefined;
    try {
      answer = await send<ListingAnswer | undefined>({
        endpoint,
        path,
        key,
        etag: revalidate === 'etag' ? etagOfBasis(previous) : undefined,
        requestClass,
        signal,
        onStart,
        onPiece: (piece) => {
          const nextTurn = turn.take(piece.length);
          return opened().push(piece) ?? nextTurn;
        },
        interpret: async (body, head) => {
          if (body === undefined) return { unchanged: true, full: false };
          if (hasNextPage(head)) wanted.onNextPage();
          return await opened().finish(etagOf(head), signal.requests);
        },
      });
    } finally {
      stream?.cancel();
      records.end();
    }
    if (answer !== undefined) return answer;
    return await request({
      ...wanted,
      revalidate: 'bytes',
      allowDifference: false,
    });
  };
}
