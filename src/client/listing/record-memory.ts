import { type ConcurrencyLimit, limitConcurrency } from '../../concurrency/limit-concurrency.ts';

/** A listing whose new items take more than this, bytes, is large: of those, one is read at a time. */
const LARGE_BYTES = 1024 * 1024;
/** While more bytes wait for the store, no listing with new items is completed: about those of 50,000 usual items. */
const MAX_STORING_BYTES = 32 * 1024 * 1024;
/** Least that a poll with new items counts there: of thousands of small ones, the last would wait longer than a statement may. */
const MIN_STORING_BYTES = 64 * 1024;

/**
 * Bounds the memory of records on their way from listings to the store (docs/design-decisions.md#a-listing-is-read-as-it-arrives).
 * Nothing waits here for something that needs a slot: only for a body that is being read, and for the store.
 */
interface RecordMemory {
  /** Starts to count the records of a listing that is read. A large one of a failing project never delays that of a healthy one. */
  readonly readListing: (isFailing: boolean) => ListingRecords;
  /** Counts the records of a poll that waits for nothing but the store, until it is disposed of. */
  readonly storing: (bytes: number) => Disposable;
}

/** The records of one listing while it is read. */
export interface ListingRecords {
  /** Counts further bytes. Returns a promise that never rejects if the listing must not be read on before it resolves. */
  readonly take: (bytes: number) => Promise<void> | undefined;
  /** Bytes so far. */
  readonly bytes: () => number;
  /** Resolves when the store has room for the listing, and at once if it has no records. */
  readonly untilStored: () => Promise<void>;
  /** The listing was read, or is not read on: its waits end at once, as what they hold up stays in memory. */
  readonly end: () => void;
}

export function createRecordMemory(): RecordMemory {
  const [oneHealthy, oneFailing] = [limitConcurrency(1), limitConcurrency(1)];
  let storing = 0;
  let stored = Promise.withResolvers<void>();

  async function untilStored(): Promise<void> {
    if (storing <= MAX_STORING_BYTES) return;
    await stored.promise;
    await untilStored();
  }

  /** Resolves when no other large listing of the limit is read, and keeps further ones waiting until `ended` resolves. */
  function untilAlone(oneLarge: ConcurrencyLimit, ended: Promise<void>): Promise<void> {
    const alone = Promise.withResolvers<void>();
    void oneLarge(async () => {
      alone.resolve();
      await ended;
    });
    return alone.promise;
  }

  return {
    readListing: (isFailing) => {
      const ended = Promise.withResolvers<void>();
      let bytes = 0;
      let alone: Promise<void> | undefined;
      return {
        take: (more) => {
          bytes += more;
          if (bytes <= LARGE_BYTES) return undefined;
          alone ??= untilAlone(isFailing ? oneFailing : oneHealthy, ended.promise);
          // The poll of the one that was read before may have got to the store since.
          return Promise.race([alone.then(untilStored), ended.promise]);
        },
        bytes: () => bytes,
        untilStored: async () => {
          if (bytes > 0) await Promise.race([untilStored(), ended.promise]);
        },
        end: ended.resolve,
      };
    },
    storing: (bytes) => {
      const counted = bytes > 0 ? Math.max(bytes, MIN_STORING_BYTES) : 0;
      storing += counted;
      return {
        [Symbol.dispose]: () => {
          storing -= counted;
          stored.resolve();
          stored = Promise.withResolvers();
        },
      };
    },
  };
}
