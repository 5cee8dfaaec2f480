import type { AnomalyReason, Listing, ObservedRecord } from '../../src/domain/record.ts';
import type { Kind, Status } from '../../src/domain/status.ts';
import type { ApiError } from '../../src/monitor/errors.ts';
import type { EvaluationService, ListingAnswer } from '../../src/monitor/ports/service.ts';
import type { Step } from './bodies.ts';

/** The listing that every service has now, and the keys so far. */
export interface Now {
  step: Step | undefined;
  keys: readonly string[];
}

/** A service that keeps nothing but the bytes of the last listing, and parses any others whole. */
export function naiveService(
  now: Now,
  Failure: typeof ApiError,
): Pick<EvaluationService, 'list' | 'storing'> {
  return {
    list: async (_project, kind, { previous, onRequest }): Promise<ListingAnswer> => {
      onRequest();
      const { step, keys } = now;
      if (step === undefined) throw new Error('no step');
      const { body } = step;
      const table = { digest: body.toString('latin1') };
      if (previous?.digest === table.digest) {
        return { unchanged: true, full: true, etag: undefined };
      }
      const items = parse(body);
      if (items === undefined) throw new Failure('invalid_response', 'no list');
      const listing = read(items, kind, keys);
      if (items.length > 0 && listing.records.size === 0) {
        throw new Failure('invalid_response', 'useless', { anomalies: listing.anomalies });
      }
      const { size } = listing.records;
      return { unchanged: false, listing, size, recordBytes: 0, etag: undefined, table };
    },
    storing: () => ({ [Symbol.dispose]: () => {} }),
  };
}

/** Parses a list of at most 64 levels; undefined if it is none. */
function parse(body: Buffer): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return Array.isArray(value) && depthOf(value) <= 64 ? value : undefined;
  } catch {
    return undefined;
  }
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'] as const;

/** Reads the items of a listing by the rules of docs/specification.md#reading-items. */
function read(items: readonly unknown[], kind: Kind, keys: readonly string[]): Listing {
  const records = new Map<string, ObservedRecord>();
  const idsWithoutStatus = new Set<string>();
  const anomalies = new Map<AnomalyReason, number[]>(
    (['invalid', 'unknown_status', 'duplicate_id'] as const).map((reason) => [reason, []]),
  );
  let complete = true;
  const clean = (value: unknown, max: number) => {
    if (typeof value !== 'string') return undefined;
    const text = keys.reduce((left, key) => left.replaceAll(key, '[redacted]'), value);
    return Array.from(text.toWellFormed().replaceAll('\0', '\uFFFD')).slice(0, max).join('');
  };
  for (const [index, item] of items.entries()) {
    const fields = (item ?? {}) as Readonly<Record<string, unknown>>;
    const { id, status: raw } = fields;
    const isUsable = id !== '' && clean(id, 512) === id && typeof id === 'string';
    const statusRaw = clean(raw, 256);
    const note = (reason: AnomalyReason) => void anomalies.get(reason)?.push(index);
    const isNone = kind === 'dataset' && (raw === undefined || raw === null);
    if (!isUsable || (statusRaw === undefined && !isNone)) {
      note('invalid');
      if (isUsable) idsWithoutStatus.add(id);
      else complete = false;
      continue;
    }
    // Of several items with one id, the last one has the place.
    if (records.delete(id) || idsWithoutStatus.has(id)) note('duplicate_id');
    const known = isNone ? 'NONE' : STATUSES.find((each) => each === raw);
    if (known === undefined) note('unknown_status');
    const status: Status = known ?? 'UNKNOWN';
    records.set(id, {
      id,
      status,
      statusRaw: known === undefined ? statusRaw : undefined,
      name: clean(fields['name'], 1024),
      timestamp: clean(fields['timestamp'], 1024),
      experiment: clean(fields['experiment'], 512) || undefined,
      dataset: clean(fields['dataset'], 512) || undefined,
      metric: clean(fields['metric'], 512) || undefined,
    });
  }
  return {
    records,
    idsWithoutStatus,
    complete,
    anomalies: [...anomalies]
      .filter(([, indexes]) => indexes.length > 0)
      .map(([reason, indexes]) => ({
        reason,
        count: indexes.length,
        indexes: indexes.slice(0, 10),
      })),
  };
}
