/** Listings that have taken less than this are never held up for other listings. */
const SMALL_BYTES = 1024 * 1024;

/**
 * Limits the memory of records on their way from listings to the store. It holds up listings that are being read, and nothing
 * else: whoever holds records of a listing that was read can always go on (docs/design-decisions.md#a-listing-is-read-as-it-arrives).
 */
export interface RecordBudget {
  /** Starts to count the records of a listing. */
  readonly readListing: () => ReadingBudget;
  /** Counts records of this size, in bytes, as being stored until it is disposed of. */
  readonly store: (bytes: number) => Disposable;
}

/** The share of one listing. */
export interface ReadingBudget {
  /** Counts further records of this size, in bytes. */
  take(bytes: number): void;
  /** Returns a promise that never rejects if the listing must not be read on before it resolves. */
  untilRoom(): Promise<void> | undefined;
  /** Size of all records taken so far, in bytes. */
  bytes(): number;
  /** The listing was read, or is not read on. */
  end(): void;
}

interface Reading {
  bytes: number;
}

/** Creates a budget of about `limit` bytes. One listing alone may take any number. */
export function createRecordBudget(limit: number): RecordBudget {
  /** Listings of which something was read, in the order in which that began. */
  const readings = new Set<Reading>();
  const waiting = new Map<Reading, PromiseWithResolvers<void>>();
  let stored = 0;

  function mustWait(reading: Reading): boolean {
    // The store needs nothing that a listing holds, so this wait always ends.
    if (stored > reading.bytes && stored + reading.bytes > limit) return true;
    const [first] = readings;
    if (reading === first || reading.bytes < SMALL_BYTES) return false;
    return readings.values().reduce((sum, { bytes }) => sum + bytes, 0) > limit;
  }

  function wake(): void {
    for (const [reading, { resolve }] of waiting) {
      if (mustWait(reading)) continue;
      waiting.delete(reading);
      resolve();
    }
  }

  return {
    readListing: () => {
      const reading: Reading = { bytes: 0 };
      return {
        take: (bytes) => {
          reading.bytes += bytes;
          readings.add(reading);
        },
        untilRoom: () => {
          if (!mustWait(reading)) return undefined;
          const wait = waiting.get(reading) ?? Promise.withResolvers();
          waiting.set(reading, wait);
          return wait.promise;
        },
        bytes: () => reading.bytes,
        end: () => {
          readings.delete(reading);
          waiting.get(reading)?.resolve();
          waiting.delete(reading);
          wake();
        },
      };
    },
    store: (bytes) => {
      stored += bytes;
      return {
        [Symbol.dispose]: () => {
          stored -= bytes;
          wake();
        },
      };
    },
  };
}
