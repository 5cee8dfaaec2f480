import type { Status } from './status.ts';

/** A prompt or dataset as one listing shows it. Texts are scrubbed of keys and cut already. */
export interface ObservedRecord {
  /** 1 to 512 code points. */
  readonly id: string;
  readonly status: Status;
  /** The service's own text, only where `status` is `UNKNOWN`. */
  readonly statusRaw: string | undefined;
  readonly name: string | undefined;
  /** An opaque text of the service, never read as a time. */
  readonly timestamp: string | undefined;
}

export const ANOMALY_REASONS = ['invalid', 'unknown_status', 'duplicate_id'] as const;
export type AnomalyReason = (typeof ANOMALY_REASONS)[number];

/** The items of one listing that are not as documented for the same reason. */
export interface AnomalySummary {
  readonly reason: AnomalyReason;
  readonly count: number;
  /** Positions in the array, from 0, of the first 10. */
  readonly indexes: readonly number[];
  /** Equal for the same ids and raw statuses in any order, for as long as the process runs. */
  readonly digest: string;
}

/** One listing, read. */
export interface Listing {
  /** By id, one record an id (the last one won), in the order of the listing. */
  readonly records: ReadonlyMap<string, ObservedRecord>;
  /** Ids of items that are invalid but for their id: present, their status unknown to this listing. */
  readonly presentIds: ReadonlySet<string>;
  /** False when an item had no usable id: then nobody can be said to be absent. */
  readonly complete: boolean;
  /** One summary for each reason that occurred. */
  readonly anomalies: readonly AnomalySummary[];
}

/** A prompt or dataset as it is known between polls. */
export interface KnownRecord extends ObservedRecord {
  /** When it was first seen in `status`, epoch ms. */
  readonly since: number;
  /** Complete listings in a row that lacked it. */
  readonly missing: number;
  /** Missing for so long that it left the gauges; its status is remembered all the same. */
  readonly gone: boolean;
}

/** All that is known of one kind of record of one project. */
export interface KnownListing {
  /** False until the first listing was committed: that one is the baseline. */
  readonly baselined: boolean;
  readonly records: ReadonlyMap<string, KnownRecord>;
}
