import { ITEMS_PER_STEP, type Steps } from '../../domain/steps.ts';

/** Hashes and ids of a listing's items, kept so that only new items of the next one are read. */
export interface ItemTable {
  /** Two numbers for each item, comparable only with those of the same scanner. */
  readonly hashes: Uint32Array;
  /** The ids of all items, joined: the garbage collector marks one string instead of a hundred thousand. */
  readonly ids: string;
  /** Where the id of each item ends in `ids`. */
  readonly idEnds: Uint32Array;
  /** Version of the secrets that the texts were scrubbed of. */
  readonly secrets: number;
}

/** Result of looking up the items of a body in a table. */
export interface ItemMatch {
  /** For each item its place in the table plus one; 0 for a new item. */
  readonly places: Uint32Array;
  /** Indexes of the new items. */
  readonly newItems: readonly number[];
  /** Ids of the table's items whose bytes are not in the body. */
  readonly vanished: ReadonlySet<string>;
}

/** With a larger share of new or vanished items, reading all of them costs no more. */
const MAX_NEW_SHARE = 0.25;

/** Creates the table of a listing that was read whole; undefined if the numbers of ids and items differ. */
export function* createItemTable(
  hashes: Uint32Array,
  ids: Iterable<string>,
  secrets: number,
): Steps<ItemTable | undefined> {
  const idEnds = new Uint32Array(hashes.length / 2);
  const texts: string[] = [];
  let step: string[] = [];
  let count = 0;
  let end = 0;
  for (const id of ids) {
    step.push(id);
    idEnds[count] = end += id.length;
    count += 1;
    if (step.length === ITEMS_PER_STEP) {
      texts.push(step.join(''));
      step = [];
      yield;
    }
  }
  if (count !== idEnds.length) return undefined;
  return { hashes, ids: [...texts, ...step].join(''), idEnds, secrets };
}

/** Looks up the items of a body; undefined if an item occurs twice, or too many are new or vanished. */
export function* matchItems(table: ItemTable, hashes: Uint32Array): Steps<ItemMatch | undefined> {
  const count = hashes.length / 2;
  const maxNew = count * MAX_NEW_SHARE;
  const maxVanished = table.idEnds.length * MAX_NEW_SHARE;
  const places = new Uint32Array(count);
  const newItems: number[] = [];
  const seen = new Uint8Array(table.idEnds.length);
  let find: HashLookup | undefined;
  /** Place of the next item if the order is unchanged. */
  let expected = 0;
  for (let index = 0; index < count; index += 1) {
    if ((index + 1) % ITEMS_PER_STEP === 0) yield;
    const [low, high] = [hashes[2 * index] ?? 0, hashes[2 * index + 1] ?? 0];
    let place: number | undefined = expected;
    if (table.hashes[2 * place] !== low || table.hashes[2 * place + 1] !== high) {
      find ??= yield* createHashLookup(table.hashes);
      place = find(low, high);
    }
    if (place === undefined) {
      newItems.push(index);
      if (newItems.length > maxNew) return undefined;
      expected += 1;
      continue;
    }
    if (seen[place] === 1) return undefined;
    seen[place] = 1;
    places[index] = place + 1;
    expected = place + 1;
  }
  if (table.idEnds.length - (count - newItems.length) > maxVanished) return undefined;
  return { places, newItems, vanished: yield* unseenIds(table, seen) };
}

/** Returns whether an item found in the table has one of these ids. */
export function* hasAnyId(
  table: ItemTable,
  places: Uint32Array,
  ids: ReadonlySet<string>,
): Steps<boolean> {
  if (ids.size === 0) return false;
  for (const [index, place] of places.entries()) {
    if ((index + 1) % ITEMS_PER_STEP === 0) yield;
    if (place > 0 && ids.has(idAt(table, place - 1))) return true;
  }
  return false;
}

/** Creates the table of a body from the previous one; `newIds` are the ids of the new items, in order. */
export function* updateItemTable(
  table: ItemTable,
  places: Uint32Array,
  hashes: Uint32Array,
  newIds: Iterator<string>,
): Steps<ItemTable> {
  const texts: string[] = [];
  const idEnds = new Uint32Array(places.length);
  let end = 0;
  /** Range of consecutive ids that is copied in one piece. */
  let [from, to] = [0, 0];
  for (let index = 0; index < places.length; index += 1) {
    if ((index + 1) % ITEMS_PER_STEP === 0) yield;
    const known = places[index] ?? 0;
    const place = known - 1;
    const start = known === 0 ? to : startOfId(table, place);
    if (known === 0 || start !== to) {
      texts.push(table.ids.slice(from, to));
      [from, to] = [start, start];
    }
    if (known === 0) {
      const id = newIds.next().value ?? '';
      texts.push(id);
      end += id.length;
    } else {
      to = table.idEnds[place] ?? 0;
      end += to - start;
    }
    idEnds[index] = end;
  }
  texts.push(table.ids.slice(from, to));
  return { hashes, ids: texts.join(''), idEnds, secrets: table.secrets };
}

function* unseenIds(table: ItemTable, seen: Uint8Array): Steps<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (let place = seen.indexOf(0); place !== -1; place = seen.indexOf(0, place + 1)) {
    ids.add(idAt(table, place));
    if (ids.size % ITEMS_PER_STEP === 0) yield;
  }
  return ids;
}

function idAt(table: ItemTable, place: number): string {
  return table.ids.slice(startOfId(table, place), table.idEnds[place]);
}

function startOfId({ idEnds }: ItemTable, place: number): number {
  return place === 0 ? 0 : (idEnds[place - 1] ?? 0);
}

/** Returns the place of a hash; undefined if it is absent. */
type HashLookup = (low: number, high: number) => number | undefined;

/** Creates a hash table with open addressing, which takes a tenth of the time and memory of a Map. */
function* createHashLookup(hashes: Uint32Array): Steps<HashLookup> {
  const count = hashes.length / 2;
  const mask = 2 ** Math.ceil(Math.log2(2 * count + 1)) - 1;
  /** Places plus one; 0 is a free slot. */
  const slots = new Uint32Array(mask + 1);
  for (let place = 0; place < count; place += 1) {
    if ((place + 1) % ITEMS_PER_STEP === 0) yield;
    let slot = (hashes[2 * place] ?? 0) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = place + 1;
  }
  return (low, high) => {
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const place = (slots[slot] ?? 0) - 1;
      if (place < 0) return undefined;
      if (hashes[2 * place] === low && hashes[2 * place + 1] === high) return place;
    }
  };
}
