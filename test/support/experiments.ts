import { compareListing } from '../../src/domain/transition.ts';
import type { Committed, KnownProject, PollHealth, Store } from '../../src/monitor/ports/store.ts';
import { listingOf } from './monitor.ts';

/** Statuses and experiments by id. */
export type Items = Readonly<Record<string, readonly [status: string, experiment?: string]>>;

/** Polls `project`, which shows these prompts. A prompt is gone after two listings without it. */
export async function pollItems(
  store: Pick<Store, 'loadKnown' | 'commitPoll'>,
  project: string,
  items: Items,
  at: number,
  { complete = true, from = undefined as KnownProject | undefined } = {},
): Promise<Committed | undefined> {
  const { token, listings } = from ?? (await store.loadKnown(project, ['prompt']));
  const known = listings.get('prompt');
  if (known === undefined) throw new Error('not loaded');
  const listing = listingOfItems(items, complete);
  const { changes } = await compareListing(known, listing, { at, missingAfter: 2 });
  const changed = new Map([['prompt' as const, changes]]);
  const health: PollHealth = {
    up: true,
    consecutiveFailures: 0,
    reason: undefined,
    lastPollAt: at,
    lastSuccessAt: at,
  };
  return await store.commitPoll({ project, at, health, token, listings: changed });
}

/** Returns a listing of these prompts. */
export function listingOfItems(items: Items, complete = true) {
  const statuses = Object.entries(items).map(([id, [status]]) => [id, status] as const);
  const listing = listingOf(Object.fromEntries(statuses), { complete });
  const records = [...listing.records].map(
    ([id, record]) => [id, { ...record, experiment: items[id]?.[1] }] as const,
  );
  return { ...listing, records: new Map(records) };
}
