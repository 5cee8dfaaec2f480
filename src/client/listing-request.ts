import type { Kind } from '../domain/status.ts';
import type { Endpoint } from '../monitor/events.ts';
import type { ListingAnswer, ListOptions } from '../monitor/ports/service.ts';
import { ListingReader } from './listing/listing.ts';
import type { RecordMemory } from './listing/record-memory.ts';
import { createItemScanner } from './listing/scanner.ts';
import { type ApiRequest, etagOf, hasNextPage, type Sender } from './request.ts';

interface ListingRequestOptions {
  readonly send: Sender;
  /** Largest number of items in one listing. */
  readonly maxItems: number;
  readonly memory: RecordMemory;
}

interface ListingRequest
  extends
    Pick<ListOptions, 'previous' | 'etag' | 'allowDifference' | 'signal'>,
    Pick<ApiRequest<unknown>, 'path' | 'key' | 'requestClass'> {
  readonly kind: Kind;
  readonly endpoint: Endpoint;
  /** Called when a request gets its slot. */
  readonly onStart: () => void;
  /** Called when an answer has a `Link` to a next page. */
  readonly onNextPage: () => void;
}

/** Creates a function that requests a listing and reads it as it arrives. */
export function createListingRequest(
  options: ListingRequestOptions,
): (request: ListingRequest) => Promise<ListingAnswer> {
  const { send, maxItems, memory } = options;
  const startScan = createItemScanner(maxItems);

  return async ({ kind, previous, allowDifference, onNextPage, ...request }) => {
    const records = memory.readListing();
    let reader: ListingReader | undefined;
    // Created with the first piece, as many answers are a 304 without a body.
    const read = () => {
      const { scrub } = request.key;
      reader ??= new ListingReader({ kind, previous, allowDifference, scrub, startScan, records });
      return reader;
    };
    try {
      return await send<ListingAnswer>({
        ...request,
        onPiece: (piece) => read().push(piece),
        interpret: async (body, head) => {
          if (body === undefined) return { unchanged: true, full: false };
          if (hasNextPage(head)) onNextPage();
          return await read().finish(etagOf(head), request.signal.requests);
        },
      });
    } finally {
      records.end();
    }
  };
}
