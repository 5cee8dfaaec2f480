import type { AnomalyReason, Listing, ObservedRecord } from '../../domain/record.ts';
import { statusOf, type Kind, type Status } from '../../domain/status.ts';
import { createAnomalyCounter } from './anomaly-counter.ts';
import { isObject } from './json.ts';
import type { Scrub } from '../../domain/scrub.ts';
import { cleanText, cutCodePoints } from '../text.ts';
import { describeItem } from '../unusable.ts';

/** Lengths in code points (docs/specification.md#reading-items). */
const MAX_ID_LENGTH = 512;
const MAX_TEXT_LENGTH = 1024;
const MAX_STATUS_LENGTH = 256;

/** Turns the items of a listing into records, and counts anomalous items (docs/specification.md#reading-items). */
export interface ListingReader {
  /** Adds an item; `index` is its position in the whole listing. Returns its id; undefined if that is not usable. */
  add(item: unknown, index: number): string | undefined;
  /** Says why the first item that is not usable is not; undefined if all are. */
  firstFault(): string | undefined;
  /** Returns the ids of items added so far that were an anomaly, or whose id occurred twice. */
  unusualIds(): ReadonlySet<string>;
  /** Returns the listing of all items added so far. */
  listing(): Listing;
}

export function createListingReader(kind: Kind, scrub: Scrub): ListingReader {
  const records = new Map<string, ObservedRecord>();
  const idsWithoutStatus = new Set<string>();
  const unusualIds = new Set<string>();
  const anomalies = createAnomalyCounter();
  let complete = true;
  let firstFault: string | undefined;

  function add(item: unknown, index: number): string | undefined {
    const fields = fieldsOf(item);
    const id = usableId(fields['id'], scrub);
    const status = readStatus(fields['status'], kind, scrub);
    const addAnomaly = (reason: AnomalyReason) => {
      anomalies.add(reason, index, identify(id, fields['status'], scrub));
      if (id !== undefined) unusualIds.add(id);
    };
    if (id === undefined || status === undefined) {
      addAnomaly('invalid');
      firstFault ??= describeItem(item, { index, isIdUsable: id !== undefined }, scrub);
      if (id === undefined) complete = false;
      else idsWithoutStatus.add(id);
      return id;
    }
    if (records.has(id) || idsWithoutStatus.has(id)) addAnomaly('duplicate_id');
    if (status.status === 'UNKNOWN') addAnomaly('unknown_status');
    const name = readText(fields['name'], scrub);
    const timestamp = readText(fields['timestamp'], scrub);
    records.set(id, { ...status, id, name, timestamp });
    return id;
  }

  return {
    add,
    firstFault: () => firstFault,
    unusualIds: () => unusualIds,
    listing: () => ({ records, idsWithoutStatus, complete, anomalies: anomalies.summaries() }),
  };
}

/** Returns the fields of a parsed item. None of the names read here is inherited from a prototype. */
function fieldsOf(item: unknown): Readonly<Record<string, unknown>> {
  return isObject(item) ? item : {};
}

/** Returns an id that can be tracked and requested; undefined for any other, and for one that contains a key. */
function usableId(id: unknown, scrub: Scrub): string | undefined {
  return typeof id === 'string' &&
    id !== '' &&
    cutCodePoints(id, MAX_ID_LENGTH) === id &&
    id.isWellFormed() &&
    scrub(id) === id
    ? id
    : undefined;
}

type ReadStatus = Pick<ObservedRecord, 'status' | 'statusRaw'>;

/** Returns the status of an item; undefined if the field is invalid. */
function readStatus(raw: unknown, kind: Kind, scrub: Scrub): ReadStatus | undefined {
  if (typeof raw === 'string') {
    const status: Status = statusOf(raw);
    const statusRaw = status === 'UNKNOWN' ? cleanText(raw, MAX_STATUS_LENGTH, scrub) : undefined;
    return { status, statusRaw };
  }
  const mayBeAbsent = kind === 'dataset' && (raw === undefined || raw === null);
  return mayBeAbsent ? { status: 'NONE', statusRaw: undefined } : undefined;
}

function readText(value: unknown, scrub: Scrub): string | undefined {
  return typeof value === 'string' ? cleanText(value, MAX_TEXT_LENGTH, scrub) : undefined;
}

/** Returns the identity of an anomaly: its id and status, without its position. */
function identify(id: string | undefined, status: unknown, scrub: Scrub): string {
  const shown =
    typeof status === 'string' ? `=${cleanText(status, MAX_STATUS_LENGTH, scrub)}` : typeof status;
  return `${id ?? ''}\0${shown}`;
}
