import type { Steps } from '../../domain/steps.ts';
import type { Listing } from '../../domain/record.ts';
import type { Kind } from '../../domain/status.ts';
import { ApiError } from '../../monitor/errors.ts';
import { createPieceReader } from '../sending/body-pieces.ts';
import { hasAnyId, matchItems, updateItemTable, type ItemTable } from './item-table.ts';
import type { ScannedItems } from './item-scanner.ts';
import { readItems } from './json.ts';
import { createListingReader, WANTED_OF_LISTING } from './listing.ts';
import type { Scrub } from '../../domain/scrub.ts';

/** How much is parsed in one go: some milliseconds. */
const STRETCH_BYTES = 256 * 1024;
const STRETCH_ITEMS = 4096;

/** The body of a listing whose items have been found. */
export interface ListingBody {
  readonly pieces: readonly Buffer[];
  readonly items: ScannedItems;
}

/** What of a listing is not as it was in the one before. */
export interface ListingDifference {
  /** The records of new items, and of those whose bytes have changed. */
  readonly listing: Listing;
  /** Ids that are no longer in it. */
  readonly vanished: readonly string[];
  /** To read the next one by. */
  readonly items: ItemTable;
}

/**
 * Reads every item.
 * @throws {ApiError} `invalid_response`, with the anomalies if there are items and none of them is usable
 */
export function* readListing(
  { pieces, items }: ListingBody,
  kind: Kind,
  scrub: Scrub,
): Steps<Listing> {
  const reader = createListingReader(kind, scrub);
  const bytes = createPieceReader(pieces);
  const { ends } = items;
  for (let from = 0; from < ends.length;) {
    const begin = startOf(items, from) - 1;
    let to = from + 1;
    const most = Math.min(ends.length, from + STRETCH_ITEMS);
    while (to < most && endOf(items, to) - begin < STRETCH_BYTES) to += 1;
    const parsed = yield* readItems(bytes(begin, endOf(items, to - 1) + 1), WANTED_OF_LISTING);
    // Nothing between the brackets is no item, anywhere else it is a fault.
    if (parsed.length !== to - from && (ends.length > 1 || parsed.length > 0)) throw notJson();
    for (const [offset, item] of parsed.entries()) reader.add(item, from + offset);
    from = to;
    if (from < ends.length) yield;
  }
  const listing = reader.listing();
  const { records, anomalies } = listing;
  if (records.size === 0 && anomalies.length > 0) {
    throw new ApiError('invalid_response', 'no item of the list is usable', { anomalies });
  }
  return listing;
}

/**
 * Reads only the items that `table` does not know. Undefined if that cannot be told from their bytes alone to come to the
 * same as reading them all: something among them is unusual, or most are new.
 * @throws {ApiError} `invalid_response`
 */
export function* readDifference(
  { pieces, items }: ListingBody,
  table: ItemTable,
  kind: Kind,
  scrub: Scrub,
): Steps<ListingDifference | undefined> {
  const match = yield* matchItems(table, items.hashes);
  if (match === undefined) return undefined;
  const reader = createListingReader(kind, scrub);
  const bytes = createPieceReader(pieces);
  let unread = STRETCH_BYTES;
  for (const [count, index] of match.fresh.entries()) {
    const begin = startOf(items, index) - 1;
    const end = endOf(items, index) + 1;
    // One by one: side by side, what is no JSON could pass for it.
    const [item, ...others] = yield* readItems(bytes(begin, end), WANTED_OF_LISTING);
    if (item === undefined || others.length > 0) throw notJson();
    reader.add(item, index);
    unread -= end - begin;
    if (unread < 0 || (count + 1) % STRETCH_ITEMS === 0) {
      unread = STRETCH_BYTES;
      yield;
    }
  }
  const listing = reader.listing();
  const { records } = listing;
  if (listing.anomalies.length > 0) return undefined;
  const added = new Set(records.keys()).difference(match.vanished);
  if (yield* hasAnyId(table, match.places, added)) return undefined;
  return {
    listing,
    vanished: [...match.vanished].filter((id) => !records.has(id)),
    items: yield* updateItemTable(table, match.places, items.hashes, records.keys()),
  };
}

function startOf({ first, ends }: ScannedItems, index: number): number {
  return index === 0 ? first : endOf({ ends }, index - 1) + 1;
}

function endOf({ ends }: Pick<ScannedItems, 'ends'>, index: number): number {
  return ends[index] ?? 0;
}

function notJson(): ApiError {
  return new ApiError('invalid_response', 'the body is not JSON');
}
