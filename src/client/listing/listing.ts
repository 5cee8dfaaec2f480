import { inTurns, ownTurn } from '../../domain/turns.ts';
import {
  ANOMALY_REASONS,
  type AnomalyReason,
  type AnomalySummary,
  type Listing,
  type ObservedRecord,
} from '../../domain/record.ts';
import { statusOf, type Kind } from '../../domain/status.ts';
import { cleanUnicode } from '../../domain/visible.ts';
import { ApiError } from '../../monitor/errors.ts';
import type { ListingAnswer, ListingTable } from '../../monitor/ports/service.ts';
import { decodeItems, isObject, notJson, parseItems } from '../json.ts';
import { cleanText, cutCodePoints, type Scrub } from '../secrets.ts';
import { describeItem } from '../errors.ts';
import type { ListingRecords } from '../record-memory.ts';
import { BodyScan, type ItemScanner, type Stretch } from './scanner.ts';
import { KnownItems, type ItemTable } from './table.ts';

/** Lengths in code points (docs/specification.md#reading-items). */
const MAX_ID_LENGTH = 512;
const MAX_TEXT_LENGTH = 1024;
const MAX_STATUS_LENGTH = 256;
const MAX_LABEL_LENGTH = 512;
/** Labels that are kept to be found again: a usual listing repeats a few in thousands of items. */
const MAX_KEPT_LABELS = 1000;
/** Positions of anomalous items that are kept for each reason. */
const MAX_INDEXES = 10;
/** About the memory that a record takes besides its texts, bytes. */
const RECORD_BYTES = 200;
/** About the memory that an item takes in the table, bytes. */
const TABLE_BYTES = 64;
/** Bytes of a body that are scanned before other work has a turn of the event loop: about a millisecond. */
const SCANNED_PER_TURN = 512 * 1024;
const ITEMS_PER_TURN = 4096;

export interface ReaderOptions {
  readonly kind: Kind;
  readonly previous: ListingTable | undefined;
  /** Whether the answer may be the difference from the previous listing. */
  readonly allowDifference: boolean;
  /** The same function for each listing that is read with the same key. */
  readonly scrub: Scrub;
  readonly scanner: ItemScanner;
  /** Counts the records, and holds them up. */
  readonly memory: ListingRecords;
}

/** A new item: its record, or its id if it has no usable status; undefined without a usable id. */
type ReadItem = ObservedRecord | string | undefined;

/** New items that wait to be parsed. */
interface Waiting {
  readonly text: string;
  readonly indexes: readonly number[];
}

/**
 * Reads a listing as its body arrives (docs/specification.md#reading-listings). Items that the previous listing had are
 * recognised by their bytes, others are parsed, and nothing else of the body is kept. Nothing of it counts before its end.
 */
export class ListingReader {
  readonly #options: ReaderOptions;
  readonly #scan: BodyScan;
  /** The table of the previous listing, if the items can be compared with it. */
  readonly #last: ItemTable | undefined;
  readonly #items: KnownItems;
  /** The new items in their order. */
  readonly #read: ReadItem[] = [];
  readonly #labels: LabelReader;
  readonly #anomalies = new Anomalies();
  /** Ids of items that are not remembered, as their anomalies count in each listing. */
  readonly #unusualIds = new Set<string>();
  #firstFault: string | undefined;
  #hasEmptyItem = false;
  /** Thrown at the end: a body that is also cut or too large fails for that. */
  #fault: unknown;
  readonly #waiting: Waiting[] = [];
  #leftInTurn = SCANNED_PER_TURN;
  #pause: Promise<void> | undefined;

  constructor(options: ReaderOptions) {
    const { previous, allowDifference, scrub, scanner } = options;
    this.#options = options;
    this.#labels = new LabelReader(scrub);
    // With another key, the texts of known items could be scrubbed differently.
    const isComparable = allowDifference && isItemTable(previous) && previous.scrub === scrub;
    this.#last = isComparable ? previous : undefined;
    this.#items = new KnownItems(this.#last);
    this.#scan = new BodyScan(
      scanner,
      (low, high) => this.#items.add(low, high),
      (stretch) => this.#collect(stretch),
    );
  }

  /**
   * Reads the next piece. Returns a promise, which never rejects, if no further piece should come before it resolves.
   * @throws {ApiError} `too_large`
   */
  push(piece: Buffer): Promise<void> | undefined {
    this.#scan.push(piece);
    this.#leftInTurn -= piece.length;
    if (this.#waiting.length > 0 || this.#leftInTurn <= 0) this.#pause ??= this.#parse();
    return this.#pause;
  }

  /**
   * Returns the answer after the last piece. Rejects with the signal's reason when it aborts.
   * @throws {ApiError} `invalid_response`, with the anomalies if there are items and none of them is usable
   */
  async finish(etag: string | undefined, signal: AbortSignal): Promise<ListingAnswer> {
    const { previous, scrub, memory } = this.#options;
    const digest = this.#scan.finish();
    if (digest === previous?.digest) return { unchanged: true, full: true, etag };
    await this.#pause;
    if (this.#waiting.length > 0) await this.#parse();
    signal.throwIfAborted();
    if (this.#fault !== undefined) throw this.#fault;
    // An empty array has no item; anywhere else, an empty item is invalid.
    if (this.#hasEmptyItem && this.#items.count > 1) {
      throw notJson('there is nothing where an item should be');
    }
    const { vanished, twice } = await this.#compareIds();
    const listing = await this.#gather(twice);
    const { records, anomalies } = listing;
    const both = [...twice].filter((id) => records.has(id)).length;
    const size = this.#items.found + records.size - both;
    if (size === 0 && anomalies.length > 0) {
      const message = `no item of the listing is usable: ${this.#firstFault}`;
      throw new ApiError('invalid_response', message, { anomalies });
    }
    const [ids, unusualIds] = [this.#read.map(idOf), this.#unusualIds];
    const table = await memory.makeTable(TABLE_BYTES * this.#items.count, () =>
      this.#items.table({ digest, scrub, ids, unusualIds }),
    );
    signal.throwIfAborted();
    const difference = this.#last && { vanished };
    const recordBytes = memory.bytes;
    return { unchanged: false, listing, size, recordBytes, ...difference, etag, table };
  }

  #collect({ text, indexes }: Stretch): void {
    try {
      this.#waiting.push({ text: decodeItems(text), indexes });
    } catch (error) {
      this.#fault ??= error;
    }
  }

  /** Parses what was collected, a stretch in each turn of the event loop. */
  async #parse(): Promise<void> {
    do {
      await ownTurn();
      const next = this.#waiting.shift();
      if (next === undefined || this.#fault !== undefined) continue;
      try {
        this.#parseItems(next);
      } catch (error) {
        this.#fault = error;
      }
      await this.#options.memory.take(next.text.length + RECORD_BYTES * next.indexes.length);
    } while (this.#waiting.length > 0);
    this.#leftInTurn = SCANNED_PER_TURN;
    this.#pause = undefined;
  }

  #parseItems({ text, indexes }: Waiting): void {
    const found = parseItems(text, this.#options.scrub);
    if (found.length === 0) this.#hasEmptyItem = true;
    else if (found.length !== indexes.length) throw notJson('its brackets do not match');
    for (const [offset, item] of found.entries()) {
      this.#read.push(this.#readItem(item, indexes[offset] ?? 0));
    }
  }

  #readItem(item: unknown, index: number): ReadItem {
    const { kind, scrub } = this.#options;
    // None of the names read here is inherited from a prototype.
    const fields: Readonly<Record<string, unknown>> = isObject(item) ? item : {};
    const id = usableId(fields['id'], scrub);
    const status = readStatus(fields['status'], kind, scrub);
    if (id === undefined || status === undefined) {
      this.#anomalies.add('invalid', index);
      this.#firstFault ??= describeItem(item, { index, isIdUsable: id !== undefined }, scrub);
      if (id !== undefined) this.#unusualIds.add(id);
      return id;
    }
    if (status.status === 'UNKNOWN') {
      this.#anomalies.add('unknown_status', index);
      this.#unusualIds.add(id);
    }
    const name = readText(fields['name'], scrub);
    const timestamp = readText(fields['timestamp'], scrub);
    const experiment = this.#labels.read(fields['experiment']);
    const dataset = this.#labels.read(fields['dataset']);
    const metric = this.#labels.read(fields['metric']);
    return { ...status, id, name, timestamp, experiment, dataset, metric };
  }

  /** Returns the ids that the last listing had and this one lacks, and those that both a known and a new item have. */
  async #compareIds() {
    if (this.#last === undefined) return { vanished: [], twice: new Set<string>() };
    const vanished = await this.#items.unseenIds();
    const added = new Set<string>();
    await inTurns(this.#read, (item) => {
      const id = idOf(item);
      if (id !== undefined && !vanished.delete(id)) added.add(id);
    });
    return { vanished: [...vanished], twice: await this.#items.among(added) };
  }

  /**
   * Returns the listing of the new items. Of several items with one id the last one counts; if that is a known one, its
   * record is as it was.
   */
  async #gather(twice: ReadonlySet<string>): Promise<Listing> {
    const items = this.#items;
    const records = new Map<string, ObservedRecord>();
    const idsWithoutStatus = new Set<string>();
    /** Ids of known items that have come, of those in `twice`. */
    const passed = new Set<string>();
    const count = this.#hasEmptyItem ? 0 : items.count;
    let [complete, next] = [true, 0];
    for (let index = 0; index < count; index += 1) {
      if ((index + 1) % ITEMS_PER_TURN === 0) await ownTurn();
      const isKnown = items.isKnown(index);
      if (isKnown && (twice.size === 0 || !twice.has(items.idOf(index)))) continue;
      const item = isKnown ? items.idOf(index) : this.#read[next];
      if (!isKnown) next += 1;
      const id = idOf(item);
      if (id === undefined) {
        complete = false;
      } else if (typeof item === 'string' && !isKnown) {
        idsWithoutStatus.add(id);
      } else {
        if (records.delete(id) || idsWithoutStatus.has(id) || passed.has(id)) {
          this.#anomalies.add('duplicate_id', index);
          this.#unusualIds.add(id);
        }
        if (isKnown) passed.add(id);
        else if (typeof item === 'object') records.set(id, item);
      }
    }
    return { records, idsWithoutStatus, complete, anomalies: this.#anomalies.summaries() };
  }
}

/** Reads labels. Those of one text share the memory of it, and are scrubbed once. */
class LabelReader {
  readonly #scrub: Scrub;
  /** Clean texts by the raw ones. */
  readonly #kept = new Map<string, string>();

  constructor(scrub: Scrub) {
    this.#scrub = scrub;
  }

  /** Returns the label; undefined if there is none. */
  read(raw: unknown): string | undefined {
    if (typeof raw !== 'string' || raw === '') return undefined;
    const kept = this.#kept.get(raw);
    if (kept !== undefined) return kept;
    const label = cleanText(raw, MAX_LABEL_LENGTH, this.#scrub);
    if (raw.length <= MAX_LABEL_LENGTH && this.#kept.size < MAX_KEPT_LABELS) {
      this.#kept.set(raw, label);
    }
    return label;
  }
}

/** Counts the anomalies of one listing in constant memory. */
class Anomalies {
  readonly #groups = new Map<AnomalyReason, { count: number; readonly indexes: number[] }>();

  add(reason: AnomalyReason, index: number): void {
    const group = this.#groups.get(reason) ?? { count: 0, indexes: [] };
    this.#groups.set(reason, group);
    group.count += 1;
    if (group.indexes.length < MAX_INDEXES) group.indexes.push(index);
  }

  /** Returns one summary for each reason that occurred. */
  summaries(): readonly AnomalySummary[] {
    return ANOMALY_REASONS.flatMap((reason) => {
      const group = this.#groups.get(reason);
      return group === undefined ? [] : [{ reason, ...group }];
    });
  }
}

function isItemTable(table: ListingTable | undefined): table is ItemTable {
  return table !== undefined && 'slots' in table;
}

function idOf(item: ReadItem): string | undefined {
  return typeof item === 'object' ? item.id : item;
}

/** Returns an id that can be tracked and requested; undefined for any other, and for one that contains a key. */
function usableId(id: unknown, scrub: Scrub): string | undefined {
  return typeof id === 'string' &&
    id !== '' &&
    cutCodePoints(id, MAX_ID_LENGTH) === id &&
    cleanUnicode(id) === id &&
    scrub(id) === id
    ? id
    : undefined;
}

/** Returns the status of an item; undefined if the field is invalid. */
function readStatus(
  raw: unknown,
  kind: Kind,
  scrub: Scrub,
): Pick<ObservedRecord, 'status' | 'statusRaw'> | undefined {
  if (typeof raw === 'string') {
    const status = statusOf(raw);
    const statusRaw = status === 'UNKNOWN' ? cleanText(raw, MAX_STATUS_LENGTH, scrub) : undefined;
    return { status, statusRaw };
  }
  const mayBeAbsent = kind === 'dataset' && (raw === undefined || raw === null);
  return mayBeAbsent ? { status: 'NONE', statusRaw: undefined } : undefined;
}

function readText(value: unknown, scrub: Scrub): string | undefined {
  return typeof value === 'string' ? cleanText(value, MAX_TEXT_LENGTH, scrub) : undefined;
}
