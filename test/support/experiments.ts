import { countDurations } from '../../src/domain/limits.ts';
import type { Labels } from '../../src/domain/record.ts';
import type { Kind } from '../../src/domain/status.ts';
import { compareListing } from '../../src/domain/transition.ts';
import type { Committed, KnownProject, PollHealth, Store } from '../../src/monitor/ports/store.ts';
import { listingOf } from './monitor.ts';

/** What a listing shows by id: the status, and perhaps the experiment or several labels. */
export type Items = Readonly<
  Record<string, string | readonly [status: string, labels?: string | Labels]>
>;

interface PollOptions {
  readonly kind?: Kind;
  readonly complete?: boolean;
  /** What was known before; it is loaded otherwise. */
  readonly from?: KnownProject | undefined;
  readonly health?: PollHealth;
}

/** Polls `project`, which shows these prompts, or datasets. One is gone after two listings without it. */
export async function pollItems(
  store: Pick<Store, 'loadKnown' | 'commitPoll'>,
  project: string,
  items: Items,
  at: number,
  { kind = 'prompt', complete = true, from, health = healthAt(at) }: PollOptions = {},
): Promise<Committed | undefined> {
  const { token, listings } = from ?? (await store.loadKnown(project, [kind]));
  const known = listings.get(kind);
  if (known === undefined) throw new Error('not loaded');
  const listing = listingOfItems(items, complete);
  const { changes } = await compareListing(known, listing, { at, missingAfter: 2 });
  const durations = kind === 'prompt' ? countDurations(changes.transitions, at) : [];
  const poll = { project, at, health, token, listings: new Map([[kind, changes]]), durations };
  return await store.commitPoll(poll);
}

/** Returns the health after a successful poll. */
export function healthAt(at: number): PollHealth {
  const times = { lastPollAt: at, lastSuccessAt: at, steadySince: at };
  return { up: true, consecutiveFailures: 0, reason: undefined, ...times };
}

/** Returns a listing of these items. */
export function listingOfItems(items: Items, complete = true) {
  const shown = Object.entries(items).map(([id, item]) => {
    const [status, labels] = typeof item === 'string' ? [item] : item;
    return [id, status, typeof labels === 'string' ? { experiment: labels } : labels] as const;
  });
  const statuses = Object.fromEntries(shown.map(([id, status]) => [id, status]));
  const { records, ...listing } = listingOf(statuses, { complete });
  const labelled = shown.flatMap(([id, , labels]) => {
    const record = records.get(id);
    return record === undefined ? [] : [[id, { ...record, ...labels }] as const];
  });
  return { ...listing, records: new Map(labelled) };
}
