import type { Status } from './status.ts';

/** What the service says that a prompt belongs to; of a dataset usually nothing. 1 to 512 code points each. */
export const LABELS = ['experiment', 'dataset', 'metric'] as const;
export type Labels = { readonly [Each in (typeof LABELS)[number]]?: string | undefined };

/** A prompt or dataset in one listing. Texts are scrubbed of keys and cut. */
export interface ObservedRecord extends Labels {
  /** 1 to 512 code points. */
  readonly id: string;
  readonly status: Status;
  /** The service's text for the status; set only if `status` is `UNKNOWN`. */
  readonly statusRaw: string | undefined;
  readonly name: string | undefined;
  /** Opaque text of the service; never parsed as a time. */
  readonly timestamp: string | undefined;
}

export const ANOMALY_REASONS = ['invalid', 'unknown_status', 'duplicate_id'] as const;
export type AnomalyReason = (typeof ANOMALY_REASONS)[number];

/** The items of one listing that deviate from the documentation for one reason. */
export interface AnomalySummary {
  readonly reason: AnomalyReason;
  readonly count: number;
  /** Positions in the array, from 0, of the first 10. */
  readonly indexes: readonly number[];
}

/** The records and anomalies of one listing. */
export interface Listing {
  /** Records by id, in the order of the listing; of several items with one id, the last. */
  readonly records: ReadonlyMap<string, ObservedRecord>;
  /** Ids of listed items without a usable status. Their records count as listed and keep their stored status. */
  readonly idsWithoutStatus: ReadonlySet<string>;
  /** False if an item had no usable id: then no record counts as absent. */
  readonly complete: boolean;
  /** One summary for each reason that occurred. */
  readonly anomalies: readonly AnomalySummary[];
}

/** A prompt or dataset as it is stored between polls. */
export interface KnownRecord extends ObservedRecord {
  /** When it was first seen in `status`, epoch ms. */
  readonly since: number;
  /** Number of consecutive complete listings without it. */
  readonly missing: number;
  /** True once `missing` has reached `missing_after`: no longer counted or listed. Its status is kept. */
  readonly gone: boolean;
}

/** The stored records of one kind in one project. */
export interface KnownListing {
  /** False until the first listing is committed, which is the baseline. */
  readonly baselined: boolean;
  readonly records: ReadonlyMap<string, KnownRecord>;
}
