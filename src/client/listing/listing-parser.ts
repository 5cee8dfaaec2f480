import type { Listing } from '../../domain/record.ts';
import type { Scrub } from '../../domain/scrub.ts';
import type { Kind } from '../../domain/status.ts';
import type { StepQueue } from '../../monitor/step-queue.ts';
import { createByteBuffer, type ByteBuffer } from '../sending/byte-buffer.ts';
import type { Stretch } from './item-collector.ts';
import { notJson, parseItems } from './json.ts';
import { createListingReader } from './listing.ts';
import type { ListingRecords } from './record-memory.ts';

/** About the memory that a record takes besides its texts, bytes. */
const RECORD_BYTES = 200;
/** Maximum number of stretches that wait before no more should come: one is parsed while the next one fills. */
const MAX_WAITING = 2;

export interface ParserOptions {
  readonly kind: Kind;
  readonly scrub: Scrub;
  /** Shared by all listings, of which those of the lowest rank are parsed first. */
  readonly steps: StepQueue;
  readonly rank: number;
  readonly records: ListingRecords;
}

/** Parses the new items of a listing while further ones arrive. */
export interface ListingParser {
  /** Takes the next stretch. */
  readonly add: (stretch: Stretch) => void;
  /** Returns an empty buffer for a stretch. */
  readonly newBuffer: () => ByteBuffer;
  /** Returns a promise that never rejects if so much waits that nothing more should come before it resolves. */
  readonly untilRoom: () => Promise<void> | undefined;
  /**
   * Waits until all is parsed. `itemCount` is the number of all items of the listing.
   * @throws {ApiError} `invalid_response`
   */
  finish(itemCount: number): Promise<ParsedItems>;
  /** Drops what waits. */
  readonly cancel: () => void;
}

export interface ParsedItems {
  readonly listing: Listing;
  /** Says why the first item that is not usable is not; undefined if all are. */
  readonly firstFault: string | undefined;
  /** Ids of items that were an anomaly, or whose id occurred twice. */
  readonly unusualIds: ReadonlySet<string>;
  /** The id of each item, in order; undefined for an item without one. */
  readonly ids: readonly (string | undefined)[];
}

export function createListingParser(options: ParserOptions): ListingParser {
  const { kind, scrub, steps, rank, records } = options;
  const reader = createListingReader(kind, scrub);
  const ids: (string | undefined)[] = [];
  const spare: ByteBuffer[] = [];
  /** Resolves when a stretch has been parsed. */
  let parsed = Promise.withResolvers<void>();
  let waiting = 0;
  let untilAlone: Promise<void> | undefined;
  let hasEmptyItem = false;
  let fault: unknown;
  let isCancelled = false;

  async function parseLater({ text, indexes }: Stretch): Promise<void> {
    waiting += 1;
    try {
      await steps.run(rank, text.length(), () => parse(text.bytes(), indexes));
    } catch (error) {
      // Thrown at the end: a body that is also cut or too large fails for that.
      fault ??= error;
    }
    text.clear();
    spare.push(text);
    waiting -= 1;
    parsed.resolve();
    parsed = Promise.withResolvers();
  }

  function parse(text: Buffer, indexes: readonly number[]): void {
    if (isCancelled || fault !== undefined) return;
    untilAlone = records.take(text.length + RECORD_BYTES * indexes.length);
    const items = parseItems(text, scrub);
    if (items.length === 0) hasEmptyItem = true;
    else if (items.length !== indexes.length) throw notJson('its brackets do not match');
    for (const [offset, item] of items.entries()) ids.push(reader.add(item, indexes[offset] ?? 0));
  }

  function untilRoom(): Promise<void> | undefined {
    if (waiting >= MAX_WAITING) return untilWaiting(MAX_WAITING - 1);
    return untilAlone;
  }

  async function untilWaiting(max: number): Promise<void> {
    if (waiting <= max) return;
    await parsed.promise;
    await untilWaiting(max);
  }

  return {
    add: (stretch) => void parseLater(stretch),
    newBuffer: () => spare.pop() ?? createByteBuffer(),
    untilRoom,
    finish: async (itemCount) => {
      await untilWaiting(0);
      if (fault !== undefined) throw fault;
      // An empty array has no item; anywhere else, an empty item is invalid.
      if (hasEmptyItem && itemCount > 1) throw notJson('there is nothing where an item should be');
      return {
        ids,
        listing: reader.listing(),
        firstFault: reader.firstFault(),
        unusualIds: reader.unusualIds(),
      };
    },
    cancel: () => {
      isCancelled = true;
    },
  };
}
