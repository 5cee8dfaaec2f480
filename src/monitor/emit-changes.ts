import type { AnomalySummary } from '../domain/record.ts';
import type { Kind, Status } from '../domain/status.ts';
import type { Steps } from '../domain/steps.ts';
import type { Changes } from '../domain/transition.ts';
import type { Observer } from './events.ts';
import type { CommittedTransition } from './ports/store.ts';

/** Log lines are written synchronously, so emitting many events at once would block the event loop. */
const EVENTS_PER_STEP = 256;

interface CommittedChanges {
  readonly project: string;
  readonly changes: ReadonlyMap<Kind, Changes>;
  readonly transitions: readonly CommittedTransition[];
}

/** Emits the changes of a commit: baselines, transitions, and records that are gone. */
export function* emitChanges(emit: Observer, committed: CommittedChanges): Steps<void> {
  const { project, changes, transitions } = committed;
  for (const [kind, { baseline, records }] of changes) {
    if (!baseline) continue;
    const counts: Partial<Record<Status, number>> = {};
    for (const { status } of records) counts[status] = (counts[status] ?? 0) + 1;
    emit({ type: 'listing.baseline', project, kind, counts });
  }
  for (const [index, transition] of transitions.entries()) {
    emit({ type: 'record.transition', project, transition });
    if ((index + 1) % EVENTS_PER_STEP === 0) yield;
  }
  for (const [kind, { gone }] of changes) {
    for (const [index, record] of gone.entries()) {
      emit({ type: 'record.gone', project, kind, record });
      if ((index + 1) % EVENTS_PER_STEP === 0) yield;
    }
  }
}

/** Anomalies of each listing that was read. */
export type Anomalies = ReadonlyMap<Kind, readonly AnomalySummary[]>;

/** Emits the anomalies of a poll, and keeps them in `last`: only anomalies that differ from the last ones are logged. */
export function emitAnomalies(
  emit: Observer,
  project: string,
  anomalies: Anomalies,
  last: Map<Kind, readonly AnomalySummary[]>,
): void {
  for (const [kind, summaries] of anomalies) {
    const before = last.get(kind) ?? [];
    for (const { reason, count, indexes, digest } of summaries) {
      const changed = !before.some((other) => other.reason === reason && other.digest === digest);
      emit({ type: 'items.anomalous', project, kind, reason, count, indexes, changed });
    }
    last.set(kind, summaries);
  }
}
