import { ownTurn } from '../../domain/turns.ts';
import type { ListingTable } from '../../monitor/ports/service.ts';
import type { Scrub } from '../secrets.ts';

/** Items that a loop over bare numbers handles in one turn of the event loop, a millisecond or two. */
const NUMBERS_PER_TURN = 8192;

/** The usual items of a listing by their hashes, kept so that only other items of the next listing are parsed. */
export interface ItemTable extends ListingTable {
  /** Number of items. */
  readonly size: number;
  /** Two numbers for each item, comparable only with those of the same scanner. */
  readonly hashes: Uint32Array;
  /** Hash table with open addressing of the items' places plus one; 0 is a free slot. */
  readonly slots: Uint32Array;
  /** The ids of all items, joined, in UTF-8: outside of V8's heap, whose limit is for what comes and goes. */
  readonly ids: Buffer;
  /** Where the id of each item ends in `ids`. */
  readonly idEnds: Uint32Array;
  /** Ids in the listing whose items are not in the table, because they are parsed each time. */
  readonly unusualIds: ReadonlySet<string>;
  /** What removed the keys from the texts of its items. */
  readonly scrub: Scrub;
}

/** What a table is made of besides the items that it knows from the last one. */
interface NewItems {
  readonly digest: string;
  readonly scrub: Scrub;
  /** The id of each new item, in order; undefined for an item without one. */
  readonly ids: readonly (string | undefined)[];
  /** Ids whose items, known or new, are not to be in the table. */
  readonly unusualIds: ReadonlySet<string>;
}

/** The items of a listing that is read, in their order, looked up in the table of the last listing. */
export class KnownItems {
  readonly #table: ItemTable | undefined;
  /** For each item its place in the table plus one; 0 for a new item. */
  #places: Uint32Array;
  #hashes: Uint32Array;
  /** 1 for each place of the table whose item was found. */
  readonly #seen: Uint8Array;
  /** Number of all items. */
  count = 0;
  /** Number of known items. */
  found = 0;
  /** Length of their ids in the table. */
  #foundIds = 0;
  /** Place of the next item if the order is unchanged. */
  #expected = 0;

  /** Without a table, every item is new. */
  constructor(table: ItemTable | undefined) {
    const size = table?.size ?? 0;
    this.#table = table;
    this.#places = new Uint32Array(Math.max(64, size));
    this.#hashes = new Uint32Array(2 * this.#places.length);
    this.#seen = new Uint8Array(size);
  }

  /** Adds the next item. Returns whether it is known; one that comes twice is known only once. */
  add(low: number, high: number): boolean {
    const table = this.#table;
    const found = table && findPlace(table, this.#expected, low, high);
    const place = found !== undefined && this.#seen[found] === 0 ? found : undefined;
    if (this.count === this.#places.length) {
      this.#places = grown(this.#places);
      this.#hashes = grown(this.#hashes);
    }
    this.#hashes[2 * this.count] = low;
    this.#hashes[2 * this.count + 1] = high;
    this.#places[this.count] = place === undefined ? 0 : place + 1;
    this.count += 1;
    this.#expected = (place ?? this.#expected) + 1;
    if (table === undefined || place === undefined) return false;
    this.#seen[place] = 1;
    this.found += 1;
    this.#foundIds += (table.idEnds[place] ?? 0) - idStart(table, place);
    return true;
  }

  /** Returns whether the item at this position of the listing is known. */
  isKnown(index: number): boolean {
    return this.#places[index] !== 0;
  }

  /** Returns the id of the known item at this position of the listing. */
  idOf(index: number): string {
    const place = this.#places[index] ?? 0;
    return this.#table === undefined || place === 0 ? '' : idAt(this.#table, place - 1);
  }

  /** Returns the ids of the last listing whose items were not found. */
  async unseenIds(): Promise<Set<string>> {
    const table = this.#table;
    const ids = new Set(table?.unusualIds);
    for (
      let place = this.#seen.indexOf(0);
      place !== -1;
      place = this.#seen.indexOf(0, place + 1)
    ) {
      if (table !== undefined) ids.add(idAt(table, place));
      if (ids.size % NUMBERS_PER_TURN === 0) await ownTurn();
    }
    return ids;
  }

  /** Returns those of these ids that a known item has. */
  async among(ids: ReadonlySet<string>): Promise<Set<string>> {
    const found = new Set<string>();
    if (ids.size === 0 || this.found === 0) return found;
    for (let index = 0; index < this.count; index += 1) {
      if ((index + 1) % NUMBERS_PER_TURN === 0) await ownTurn();
      if (this.isKnown(index) && ids.has(this.idOf(index))) found.add(this.idOf(index));
    }
    return found;
  }

  /** Returns the table of this listing. Called once, as it takes the numbers over. */
  async table({ digest, scrub, ids: newIds, unusualIds }: NewItems): Promise<ItemTable> {
    const [table, hashes] = [this.#table, this.#hashes];
    const newBytes = newIds.reduce((sum, id = '') => sum + Buffer.byteLength(id), 0);
    const ids = Buffer.allocUnsafeSlow(this.#foundIds + newBytes);
    const idEnds = new Uint32Array(this.count);
    let [size, next, length] = [0, 0, 0];
    for (let index = 0; index < this.count; index += 1) {
      if ((index + 1) % NUMBERS_PER_TURN === 0) await ownTurn();
      const place = (this.#places[index] ?? 0) - 1;
      if (table !== undefined && place >= 0) {
        if (unusualIds.size > 0 && unusualIds.has(idAt(table, place))) continue;
        length += table.ids.copy(ids, length, idStart(table, place), table.idEnds[place]);
      } else {
        const id = newIds[next++];
        if (id === undefined || unusualIds.has(id)) continue;
        length += ids.write(id, length);
      }
      idEnds[size] = length;
      hashes[2 * size] = hashes[2 * index] ?? 0;
      hashes[2 * size + 1] = hashes[2 * index + 1] ?? 0;
      size += 1;
    }
    const made: ItemTable = {
      digest,
      size,
      hashes: fit(hashes, 2 * size),
      slots: await createSlots(hashes, size),
      ids: length === ids.length ? ids : Buffer.from(ids.subarray(0, length)),
      idEnds: fit(idEnds, size),
      unusualIds,
      scrub,
      free: () => [made.hashes, made.slots, made.ids, made.idEnds].forEach(freeMemory),
    };
    return made;
  }
}

function findPlace(
  table: ItemTable,
  expected: number,
  low: number,
  high: number,
): number | undefined {
  const { hashes, slots } = table;
  if (hashes[2 * expected] === low && hashes[2 * expected + 1] === high) return expected;
  const mask = slots.length - 1;
  for (let slot = low & mask; ; slot = (slot + 1) & mask) {
    const place = (slots[slot] ?? 0) - 1;
    if (place < 0) return undefined;
    if (hashes[2 * place] === low && hashes[2 * place + 1] === high) return place;
  }
}

/** Creates the hash table of the first `count` items, at most four fifths full, in a tenth of the time and memory of a Map. */
async function createSlots(hashes: Uint32Array, count: number): Promise<Uint32Array> {
  const slots = new Uint32Array(2 ** Math.ceil(Math.log2(1.25 * count + 1)));
  const mask = slots.length - 1;
  for (let place = 0; place < count; place += 1) {
    if ((place + 1) % NUMBERS_PER_TURN === 0) await ownTurn();
    let slot = (hashes[2 * place] ?? 0) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = place + 1;
  }
  return slots;
}

function grown(numbers: Uint32Array): Uint32Array {
  const larger = new Uint32Array(2 * numbers.length);
  larger.set(numbers);
  return larger;
}

/** Returns the first numbers, copied only if there are more: a part of an array keeps all of it in memory. */
function fit(numbers: Uint32Array, count: number): Uint32Array {
  return numbers.length === count ? numbers : numbers.slice(0, count);
}

/** Frees the memory of an array that has it alone. Collections come late for memory outside of V8's heap. */
function freeMemory({ buffer, byteLength }: Uint8Array | Uint32Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

function idStart({ idEnds }: ItemTable, place: number): number {
  return place === 0 ? 0 : (idEnds[place - 1] ?? 0);
}

function idAt(table: ItemTable, place: number): string {
  return table.ids.toString('utf8', idStart(table, place), table.idEnds[place]);
}
