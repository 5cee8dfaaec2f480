import { createHash } from 'node:crypto';
import { ANOMALY_REASONS, type Anomaly, type AnomalyReason } from '../domain/record.ts';

/** What the anomalies of one listing have in common with those of another, in little space. */
export interface AnomalySummary {
  readonly reason: AnomalyReason;
  readonly count: number;
  /** The first 10. */
  readonly indexes: readonly number[];
  /** Equal for the same ids and raw statuses, in whatever order. */
  readonly digest: string;
}

const INDEXES_SHOWN = 10;

/** Groups the anomalies of a listing by reason (contract 4, Reading items). */
export function summarize(anomalies: readonly Anomaly[]): readonly AnomalySummary[] {
  return ANOMALY_REASONS.flatMap((reason) => {
    const group = anomalies.filter((anomaly) => anomaly.reason === reason);
    if (group.length === 0) return [];
    const hash = createHash('sha256');
    for (const identity of group.map((anomaly) => anomaly.identity).toSorted()) {
      hash.update(`${identity.length}:${identity}`);
    }
    return [
      {
        reason,
        count: group.length,
        indexes: group.slice(0, INDEXES_SHOWN).map((anomaly) => anomaly.index),
        digest: hash.digest('base64'),
      },
    ];
  });
}

/** Whether this group is not the one that the listing before had. */
export function isNews(summary: AnomalySummary, before: readonly AnomalySummary[]): boolean {
  return !before.some(
    (other) => other.reason === summary.reason && other.digest === summary.digest,
  );
}
