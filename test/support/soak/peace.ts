import type { JournalEntry } from '../../../src/simulator/world/journal.ts';
import { listingsOf, type Observation } from '../oracle/observation.ts';
import { MISSING_AFTER } from './configuration.ts';
import { until } from './disturbance.ts';

const PATIENCE_MS = 120_000;

/** Waits until each listing is served often enough, from now on, for all states to be final. False on timeout. */
export async function isServedInPeace(
  journal: readonly JournalEntry[],
  projects: Observation['projects'],
): Promise<boolean> {
  const quietAt = Date.now();
  const lacking = new Map(
    listingsOf({ projects }).map(({ project, kind }) => [`${kind} ${project}`, MISSING_AFTER + 2]),
  );
  let seen = journal.length;
  return await until(() => {
    for (const { project, kind, producedAt } of journal.slice(seen)) {
      const listing = `${kind} ${project}`;
      if (producedAt >= quietAt) lacking.set(listing, (lacking.get(listing) ?? 0) - 1);
    }
    seen = journal.length;
    return lacking.values().every((left) => left <= 0);
  }, PATIENCE_MS);
}
