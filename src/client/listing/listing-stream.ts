import { addAbortListener } from 'node:events';
import type { Listing } from '../../domain/record.ts';
import type { Scrub } from '../../domain/scrub.ts';
import type { Kind } from '../../domain/status.ts';
import { ITEMS_PER_STEP, type Steps } from '../../domain/steps.ts';
import { ApiError } from '../../monitor/errors.ts';
import type { ListingAnswer, ListingBasis, ListOptions } from '../../monitor/ports/service.ts';
import type { StepQueue } from '../../monitor/step-queue.ts';
import { takeSteps } from '../../monitor/steps.ts';
import { createItemCollector } from './item-collector.ts';
import type { BodyScan, OnPart } from './item-scanner.ts';
import {
  createItemMatcher,
  createItemTable,
  hasAnyId,
  type ItemMatcher,
  type ItemTable,
} from './item-table.ts';
import { createListingParser, type ParsedItems } from './listing-parser.ts';
import { createNumberList } from './number-list.ts';
import type { ListingRecords } from './record-memory.ts';

/** Content of a {@link ListingBasis}. */
interface Fingerprint extends ListingBasis {
  readonly etag: string | undefined;
  /** Hash of the body's bytes, after decompression; comparable only within one process. */
  readonly digest: string;
  readonly items: ItemTable;
  /** Whether the listing had no item without a usable id. */
  readonly isComplete: boolean;
  /** What removed the keys from its texts. */
  readonly scrub: Scrub;
}

export interface StreamOptions extends Pick<ListOptions, 'previous' | 'allowDifference'> {
  readonly kind: Kind;
  /** The same function for each listing that is read with the same key. */
  readonly scrub: Scrub;
  readonly startScan: (onPart: OnPart) => BodyScan;
  /** Shared by all listings, of which those of the lowest rank are parsed first. */
  readonly steps: StepQueue;
  readonly rank: number;
  readonly records: ListingRecords;
}

/**
 * Reads a listing as its body arrives (docs/specification.md#reading-listings). Items that the previous listing had are recognised by
 * their bytes, others are parsed, and nothing else of the body is kept. Nothing of it counts before its end.
 */
export interface ListingStream {
  /**
   * Reads the next piece. Returns a promise if so much waits to be parsed that no further piece should come before it
   * resolves. It never rejects.
   * @throws {ApiError} `too_large`
   */
  readonly push: (piece: Buffer) => Promise<void> | undefined;
  /**
   * Returns the answer after the last piece, or undefined if the listing has to be requested again without
   * `allowDifference`. Rejects with the signal's reason when it aborts.
   * @throws {ApiError} `invalid_response`, with the anomalies if there are items and none of them is usable
   */
  finish(etag: string | undefined, signal: AbortSignal): Promise<ListingAnswer | undefined>;
  /** Drops what waits to be parsed. */
  readonly cancel: () => void;
}

export function createListingStream(options: StreamOptions): ListingStream {
  const { previous, allowDifference, scrub, startScan } = options;
  const before = isFingerprint(previous) ? previous : undefined;
  // With another key, the texts of known items could be scrubbed differently.
  const table = allowDifference && before?.scrub === scrub ? before.items : undefined;
  // What an incomplete listing lacks does not count as missing, but what the next one lacks does.
  const canTellChanges = table === undefined || before?.isComplete === true;
  const matcher = createItemMatcher(table);
  const hashes = createNumberList(2 * (table?.size ?? 0));
  const parser = createListingParser(options);
  const collector = createItemCollector({
    isKnown: (low, high) => {
      hashes.push(low);
      hashes.push(high);
      return matcher.next(low, high);
    },
    onStretch: parser.add,
    newBuffer: parser.newBuffer,
  });
  const scan = startScan(collector.onPart);

  function* createAnswer(
    { ids, listing, firstFault, unusualIds }: ParsedItems,
    fingerprint: Pick<Fingerprint, 'etag' | 'digest'>,
  ): Steps<ListingAnswer | undefined> {
    const size = matcher.found() + listing.records.size;
    if (size === 0 && listing.anomalies.length > 0) {
      const { anomalies } = listing;
      const message = `no item of the listing is usable: ${firstFault}`;
      throw new ApiError('invalid_response', message, { anomalies });
    }
    const vanished = table && (yield* findVanished(table, matcher, listing));
    if (vanished === 'unknown') return undefined;
    const items = yield* createItemTable({
      previous: table,
      places: matcher.places(),
      hashes: hashes.all(),
      newIds: ids,
      unusualIds,
    });
    const basis: Fingerprint = { ...fingerprint, items, isComplete: listing.complete, scrub };
    const recordBytes = options.records.bytes();
    return { unchanged: false, listing, size, recordBytes, ...(vanished && { vanished }), basis };
  }

  return {
    push: (piece) => {
      scan.push(piece);
      return parser.untilRoom();
    },
    finish: async (etag, signal) => {
      const digest = scan.finish();
      if (digest === before?.digest) {
        const basis: Fingerprint = { ...before, etag };
        return { unchanged: true, full: true, basis };
      }
      if (!canTellChanges) return undefined;
      collector.flush();
      const parsed = await orAborted(() => parser.finish(matcher.places().length), signal);
      const answer = await takeSteps(createAnswer(parsed, { etag, digest }), signal);
      await orAborted(options.records.untilStored, signal);
      return answer;
    },
    cancel: parser.cancel,
  };
}

/** Returns the result of `work`, for which a shutdown does not wait. Rejects with the signal's reason when it aborts. */
async function orAborted<Result>(
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  using _ = addAbortListener(signal, () => aborted.reject(signal.reason));
  return await Promise.race([work(), aborted.promise]);
}

/**
 * Returns the ids that the previous listing had and this one lacks. Unknown if an item that was not parsed has the id of
 * another one: which of them counts depends on their order.
 */
function* findVanished(
  table: ItemTable,
  matcher: ItemMatcher,
  { records, idsWithoutStatus }: Listing,
): Steps<readonly string[] | 'unknown'> {
  const unseen = yield* matcher.unseenIds();
  const added = new Set<string>();
  let checked = 0;
  for (const ids of [records.keys(), idsWithoutStatus]) {
    for (const id of ids) {
      checked += 1;
      if (checked % ITEMS_PER_STEP === 0) yield;
      if (!unseen.delete(id)) added.add(id);
    }
  }
  const isAmbiguous = matcher.hasRepeated() || (yield* hasAnyId(table, matcher.places(), added));
  return isAmbiguous ? 'unknown' : [...unseen];
}

/** Returns the ETag that a listing had when it was read. */
export function etagOfBasis(basis: ListingBasis | undefined): string | undefined {
  return isFingerprint(basis) ? basis.etag : undefined;
}

function isFingerprint(basis: ListingBasis | undefined): basis is Fingerprint {
  return basis !== undefined && 'digest' in basis;
}
