import type { Anomaly, AnomalyReason, Listing, ObservedRecord } from '../domain/record.ts';
import { statusOf, type Kind, type Status } from '../domain/status.ts';
import { ApiError } from '../monitor/errors.ts';
import { isObject, parseJson } from './json.ts';
import { type Keep, SCALAR } from './skim.ts';
import { cutCodePoints } from './text.ts';

/** In code points (contract 4, Reading items). */
const LONGEST_ID = 512;
const LONGEST_TEXT = 1024;
const LONGEST_STATUS = 256;

/** All that is read of a listing. */
const WANTED: Keep = {
  items: { fields: new Map(['id', 'status', 'name', 'timestamp'].map((name) => [name, SCALAR])) },
};

type Scrub = (text: string) => string;

/**
 * The body of a listing, read as leniently as contract 4 (Reading items) asks for.
 * @throws {ApiError} `invalid_response`, with the anomalies if there are items and none of them is usable
 */
export function readListing(body: Buffer, kind: Kind, scrub: Scrub): Listing {
  const items = parseJson(body, WANTED);
  if (!Array.isArray(items)) throw new ApiError('invalid_response', 'the body is not a list');
  const records = new Map<string, ObservedRecord>();
  const presentIds = new Set<string>();
  const anomalies: Anomaly[] = [];
  let complete = true;
  for (const [index, item] of items.entries()) {
    const fields = fieldsOf(item);
    const id = usableId(fields['id'], scrub);
    const status = readStatus(fields['status'], kind, scrub);
    const note = (reason: AnomalyReason) => {
      anomalies.push({ reason, index, identity: identify(id, fields['status'], scrub) });
    };
    if (id === undefined || status === undefined) {
      note('invalid');
      if (id === undefined) complete = false;
      else presentIds.add(id);
      continue;
    }
    if (records.has(id) || presentIds.has(id)) note('duplicate_id');
    if (status.status === 'UNKNOWN') note('unknown_status');
    const name = readText(fields['name'], scrub);
    const timestamp = readText(fields['timestamp'], scrub);
    records.set(id, { id, ...status, name, timestamp });
  }
  if (items.length > 0 && records.size === 0) {
    throw new ApiError('invalid_response', 'no item of the list is usable', { anomalies });
  }
  return { records, presentIds, complete, anomalies };
}

/** The fields of an item that came out of JSON; no object inherits any that is asked for here. */
function fieldsOf(item: unknown): Readonly<Record<string, unknown>> {
  return isObject(item) ? item : {};
}

/** An id that can be tracked and asked for. One that holds a key cannot be shown anywhere. */
function usableId(id: unknown, scrub: Scrub): string | undefined {
  return typeof id === 'string' &&
    id !== '' &&
    id.isWellFormed() &&
    cutCodePoints(id, LONGEST_ID) === id &&
    scrub(id) === id
    ? id
    : undefined;
}

type ReadStatus = Pick<ObservedRecord, 'status' | 'statusRaw'>;

/** Undefined if the field is of no use. */
function readStatus(raw: unknown, kind: Kind, scrub: Scrub): ReadStatus | undefined {
  if (typeof raw === 'string') {
    const status: Status = statusOf(raw);
    const statusRaw = status === 'UNKNOWN' ? clean(raw, LONGEST_STATUS, scrub) : undefined;
    return { status, statusRaw };
  }
  const mayBeAbsent = kind === 'dataset' && (raw === undefined || raw === null);
  return mayBeAbsent ? { status: 'NONE', statusRaw: undefined } : undefined;
}

function readText(value: unknown, scrub: Scrub): string | undefined {
  return typeof value === 'string' ? clean(value, LONGEST_TEXT, scrub) : undefined;
}

/** Scrubbed before it is cut: half a key is one, too. */
function clean(text: string, longest: number, scrub: Scrub): string {
  return cutCodePoints(scrub(text).toWellFormed(), longest);
}

/** Unlike ids and statuses are told apart, unlike positions are not. */
function identify(id: string | undefined, status: unknown, scrub: Scrub): string {
  const shown =
    typeof status === 'string' ? `=${clean(status, LONGEST_STATUS, scrub)}` : typeof status;
  return `${id ?? ''}\0${shown}`;
}
