import { type ConcurrencyLimit, limitConcurrency } from '../concurrency/limit-concurrency.ts';

/** A listing whose new items take more than this, bytes, is large: of those, one is read at a time. */
const LARGE_BYTES = 1024 * 1024;
/** While more bytes wait for the store, no listing with new items is completed: about those of 25,000 usual items. */
const MAX_STORING_BYTES = 16 * 1024 * 1024;
/** Least that a poll with new items counts there: of thousands of small ones, the last would wait longer than a statement may. */
const MIN_STORING_BYTES = 64 * 1024;

/**
 * Bounds the memory of records on their way from listings to the store (docs/design-decisions.md#a-listing-is-read-as-it-arrives).
 * Nothing waits here for something that needs a slot: only for a body that is being read, and for the store.
 */
export class RecordMemory {
  /** Large listings of failing projects wait only for each other: they never delay those of healthy ones. */
  readonly #oneFailing = limitConcurrency(1);
  readonly #oneHealthy = limitConcurrency(1);
  /** Large tables are made one after the other: while one is made, those before it get to be counted. */
  readonly oneTable = limitConcurrency(1);
  #storing = 0;
  #stored = Promise.withResolvers<void>();

  /** Starts to count the records of a listing that is read. */
  readListing(isFailing: boolean): ListingRecords {
    return new ListingRecords(this, isFailing ? this.#oneFailing : this.#oneHealthy);
  }

  /** Counts the records of a poll that waits for nothing but the store, until it is disposed of. */
  storing(bytes: number): Disposable {
    const counted = bytes > 0 ? Math.max(bytes, MIN_STORING_BYTES) : 0;
    this.#storing += counted;
    return {
      [Symbol.dispose]: () => {
        this.#storing -= counted;
        this.#stored.resolve();
        this.#stored = Promise.withResolvers();
      },
    };
  }

  /** Resolves when the store has room. */
  async untilStored(): Promise<void> {
    while (this.#storing > MAX_STORING_BYTES) await this.#stored.promise;
  }
}

/** The records of one listing while it is read. */
export class ListingRecords {
  readonly #memory: RecordMemory;
  readonly #oneLarge: ConcurrencyLimit;
  readonly #ended = Promise.withResolvers<void>();
  #alone: Promise<void> | undefined;
  /** Bytes so far. */
  bytes = 0;

  constructor(memory: RecordMemory, oneLarge: ConcurrencyLimit) {
    this.#memory = memory;
    this.#oneLarge = oneLarge;
  }

  /** Counts further bytes. Returns a promise that never rejects if the listing must not be read on before it resolves. */
  take(bytes: number): Promise<void> | undefined {
    this.bytes += bytes;
    if (this.bytes <= LARGE_BYTES) return undefined;
    this.#alone ??= this.#untilAlone();
    // The poll of the one that was read before may have got to the store since.
    const hasRoom = this.#alone.then(async () => await this.#memory.untilStored());
    return Promise.race([hasRoom, this.#ended.promise]);
  }

  /** Counts and makes the table of the listing, and waits until the store has room: until the commit, the last table is kept, too. */
  async makeTable<Table>(bytes: number, make: () => Promise<Table>): Promise<Table> {
    this.bytes += bytes;
    return await this.#memory.oneTable(async () => {
      const table = await make();
      await Promise.race([this.#memory.untilStored(), this.#ended.promise]);
      return table;
    });
  }

  /** The listing was read, or is not read on: its waits end at once, as what they hold up stays in memory. */
  end(): void {
    this.#ended.resolve();
  }

  /** Resolves when no other large listing of the limit is read, and keeps further ones waiting until this one has ended. */
  #untilAlone(): Promise<void> {
    const alone = Promise.withResolvers<void>();
    void this.#oneLarge(async () => {
      alone.resolve();
      await this.#ended.promise;
    });
    return alone.promise;
  }
}
