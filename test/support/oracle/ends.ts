import type { State } from './model.ts';
import { isOf, type Listing, listingsOf, nameOf, type Observation } from './observation.ts';
import { replay } from './replay.ts';

/** Compares the recorded transitions with the served listings, and what is shown at the end with what follows from them. */
export function checkHistories(observation: Observation): {
  readonly differences: readonly string[];
  /** Final states that match what is shown, by {@link nameOf}; no entry for a listing whose replay differs. */
  readonly states: ReadonlyMap<string, readonly State[]>;
} {
  const listings = listingsOf(observation);
  const differences = observation.transitions
    .filter((row) => !listings.some((listing) => isOf(listing, row)))
    .map((row) => `of nothing watched: ${JSON.stringify(row)}`);
  const states = new Map<string, readonly State[]>();
  for (const listing of listings) {
    const replayed = replay(listing, observation);
    if ('difference' in replayed) {
      differences.push(replayed.difference);
      continue;
    }
    const shown = JSON.stringify(shownOf(listing, observation));
    const expected = (state: State) => JSON.stringify(expectedOf(listing, state));
    const right = replayed.ends.filter((state) => expected(state) === shown);
    states.set(nameOf(listing), right);
    if (right.length > 0) continue;
    const all = replayed.ends.map(expected).join(' or ');
    differences.push(`${nameOf(listing)} at the end: expected ${all}; shown: ${shown}`);
  }
  return { differences, states };
}

/** Data that the interfaces show of a listing; of datasets only the counts. */
interface View {
  /** Texts of a status and a number. */
  readonly counts: readonly string[];
  /** JSON of an id, a status and how often it was missing. */
  readonly rows?: readonly string[];
  readonly missing?: number;
  readonly gone?: number;
}

function expectedOf({ kind }: Listing, { records, gone }: State): View {
  const present = [...records].filter(([, record]) => !record.gone);
  const counts = countBy(present.map(([, { status }]) => status));
  if (kind === 'dataset') return { counts };
  return {
    counts,
    rows: present
      .map(([id, { status, missing }]) => JSON.stringify([id, status, missing]))
      .toSorted(),
    missing: present.filter(([, { missing }]) => missing > 0).length,
    gone,
  };
}

function shownOf({ project, kind }: Listing, { samples, statuses }: Observation): View {
  const prefix = `evalwatch_${kind}s{project="${project}",status="`;
  const counts = [...samples]
    .filter(([series, count]) => series.startsWith(prefix) && count > 0)
    .map(([series, count]) => `${series.slice(prefix.length, -2)} ${count}`)
    .toSorted();
  if (kind === 'dataset') return { counts };
  return {
    counts,
    rows: statuses
      .filter((row) => row.project === project)
      .map(({ prompt_id, status, missing }) => JSON.stringify([prompt_id, status, missing]))
      .toSorted(),
    missing: samples.get(`evalwatch_prompts_missing{project="${project}"}`) ?? NaN,
    gone: samples.get(`evalwatch_prompts_gone_total{project="${project}"}`) ?? NaN,
  };
}

function countBy(statuses: readonly string[]): readonly string[] {
  const groups = Map.groupBy(statuses, (status) => status);
  return [...groups].map(([status, group]) => `${status} ${group.length}`).toSorted();
}
