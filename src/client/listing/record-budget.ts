import type { Clock, Timer } from '../../monitor/ports/clock.ts';
import type { HeldRecords } from '../../monitor/ports/service.ts';

/** Listings that have taken less than this are held up only for the store. */
const SMALL_BYTES = 1024 * 1024;
/** Least that a listing counts on its way to the store: thousands of small ones would wait longer than a statement may. */
const MIN_STORED_BYTES = 64 * 1024;
/** Proxies cut connections on which nothing moves, often after a minute: a listing that is held up goes on by a little. */
const HOLD_MS = 10_000;
/** More than a sixteenth of the largest buffer of a socket, below which Linux tells the sender nothing. */
const GO_ON_BYTES = 512 * 1024;

/**
 * Limits the memory of records on their way from listings to the store (docs/design-decisions.md#a-listing-is-read-as-it-arrives).
 * It holds up bodies that are being read, and listings that were read, which keep their slot meanwhile: when the store falls
 * behind, no more listings are requested. Nothing that a poll does after that is held up.
 */
export interface RecordBudget {
  /** Starts to count the records of a listing. */
  readonly readListing: () => ReadingBudget;
  /** Starts to count the records of a poll whose listings were read. */
  readonly holdRecords: () => HeldRecords;
}

/** The share of one listing while its body is read. */
export interface ReadingBudget {
  /** Counts further records of this size, in bytes. */
  take(bytes: number): void;
  /** Returns a promise that never rejects if the listing must not be read on before it resolves. */
  untilRoom(): Promise<void> | undefined;
  /** Returns a promise that never rejects if the listing, which was read, must not go to the store before it resolves. */
  untilStored(): Promise<void> | undefined;
  /** Size of all records taken so far, in bytes. */
  bytes(): number;
  /** The listing was read, or is not read on. */
  end(): void;
}

interface Reading {
  bytes: number;
  /** It may go on until it has taken so many bytes, whatever others have. */
  mayTake: number;
  /** Whether its body has ended: it waits for the store alone. */
  isRead: boolean;
}

interface Wait extends PromiseWithResolvers<void> {
  readonly timer: Timer;
}

/** Creates a budget of about `limit` bytes. One listing alone may take any number. */
export function createRecordBudget(limit: number, clock: Pick<Clock, 'timeout'>): RecordBudget {
  /** Listings of more than {@link SMALL_BYTES} that are being read, in the order in which they got there. */
  const large = new Set<Reading>();
  const waits = new Map<Reading, Wait>();
  /** Bytes of the listings that are being read; of polls that wait for another listing; and of polls that wait for the store. */
  let [read, kept, stored] = [0, 0, 0];

  function mustWait(reading: Reading): boolean {
    if (reading.bytes < reading.mayTake) return false;
    // The store needs nothing that a listing holds, so this wait ends.
    if (stored > reading.bytes && stored + reading.bytes > limit) return true;
    if (reading.isRead) return false;
    const [first] = large;
    return large.has(reading) && reading !== first && read + kept > limit;
  }

  function wake(): void {
    for (const reading of waits.keys()) if (!mustWait(reading)) release(reading);
  }

  function release(reading: Reading): void {
    const wait = waits.get(reading);
    wait?.timer.cancel();
    waits.delete(reading);
    wait?.resolve();
  }

  function holdUp(reading: Reading): Promise<void> {
    const timer = clock.timeout(HOLD_MS, () => {
      reading.mayTake = reading.bytes + GO_ON_BYTES;
      release(reading);
    });
    const waiting = { timer, ...Promise.withResolvers<void>() };
    waits.set(reading, waiting);
    return waiting.promise;
  }

  function readListing(): ReadingBudget {
    const reading: Reading = { bytes: 0, mayTake: 0, isRead: false };
    let isOver = false;
    const untilRoom = () =>
      waits.get(reading)?.promise ?? (mustWait(reading) ? holdUp(reading) : undefined);
    return {
      take: (bytes) => {
        if (isOver) return;
        reading.bytes += bytes;
        read += bytes;
        if (reading.bytes >= SMALL_BYTES) large.add(reading);
      },
      untilRoom,
      untilStored: () => {
        reading.isRead = true;
        if (!mustWait(reading)) release(reading);
        return reading.bytes > 0 ? untilRoom() : undefined;
      },
      bytes: () => reading.bytes,
      end: () => {
        if (isOver) return;
        isOver = true;
        read -= reading.bytes;
        large.delete(reading);
        release(reading);
        wake();
      },
    };
  }

  function holdRecords(): HeldRecords {
    let bytes = 0;
    let isWaitingForStore = false;
    return {
      add: (more) => {
        const counted = Math.max(more, MIN_STORED_BYTES);
        bytes += counted;
        kept += counted;
      },
      waitForStore: () => {
        isWaitingForStore = true;
        kept -= bytes;
        stored += bytes;
        wake();
      },
      [Symbol.dispose]: () => {
        if (isWaitingForStore) stored -= bytes;
        else kept -= bytes;
        wake();
      },
    };
  }

  return { readListing, holdRecords };
}
