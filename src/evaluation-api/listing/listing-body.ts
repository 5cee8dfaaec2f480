import type { Steps } from '../../domain/steps.ts';
import type { Listing } from '../../domain/record.ts';
import type { Kind } from '../../domain/status.ts';
import { ApiError } from '../../monitor/errors.ts';
import { createPieceReader } from '../sending/body-pieces.ts';
import { hasAnyId, matchItems, updateItemTable, type ItemTable } from './item-table.ts';
import type { ScannedItems } from './item-scanner.ts';
import { notJsonError, readItems } from './json.ts';
import { createListingReader, WANTED_OF_LISTING } from './listing.ts';
import type { Scrub } from '../../domain/scrub.ts';

/** Maximum that is parsed in one step: a few milliseconds. */
const STRETCH_BYTES = 256 * 1024;
const STRETCH_ITEMS = 4096;

/** Body of a listing, with the positions of its items. */
export interface ListingBody {
  readonly pieces: readonly Buffer[];
  readonly items: ScannedItems;
}

/** Difference between a listing and the previous one. */
export interface ListingDifference {
  /** Records of new items and of items whose bytes have changed. */
  readonly listing: Listing;
  /** Ids that the previous listing had and this one lacks. */
  readonly vanished: readonly string[];
  /** Table for reading the next listing. */
  readonly items: ItemTable;
}

/**
 * Parses every item of a listing.
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
    const maxTo = Math.min(ends.length, from + STRETCH_ITEMS);
    while (to < maxTo && endOf(items, to) - begin < STRETCH_BYTES) to += 1;
    const parsed = yield* readItems(bytes(begin, endOf(items, to - 1) + 1), WANTED_OF_LISTING);
    // An empty array has no item; anywhere else, an empty item is invalid.
    if (parsed.length !== to - from && (ends.length > 1 || parsed.length > 0)) throw notJsonError();
    for (const [offset, item] of parsed.entries()) reader.add(item, from + offset);
    from = to;
    if (from < ends.length) yield;
  }
  const listing = reader.listing();
  const { records, anomalies } = listing;
  if (records.size === 0 && anomalies.length > 0) {
    throw new ApiError('invalid_response', 'no item of the listing is usable', { anomalies });
  }
  return listing;
}

/**
 * Parses only the items that are not in `table`. Undefined if the result could differ from that of parsing all items,
 * because an item is unusual, or if too many are new.
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
  let bytesUntilYield = STRETCH_BYTES;
  for (const [count, index] of match.newItems.entries()) {
    const begin = startOf(items, index) - 1;
    const end = endOf(items, index) + 1;
    // One by one: joined, invalid items could form valid JSON.
    const [item, ...others] = yield* readItems(bytes(begin, end), WANTED_OF_LISTING);
    if (item === undefined || others.length > 0) throw notJsonError();
    reader.add(item, index);
    bytesUntilYield -= end - begin;
    if (bytesUntilYield < 0 || (count + 1) % STRETCH_ITEMS === 0) {
      bytesUntilYield = STRETCH_BYTES;
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
