import type { Kind } from '../domain/status.ts';
import type { Steps } from '../domain/steps.ts';
import {
  compareListing,
  detectRepeatedAbsence,
  missingIds,
  type Changes,
} from '../domain/transition.ts';
import { summaryOf, type ListingMemory, type RememberedAnswer } from './listing-memory.ts';
import type { KnownProject, Store } from './ports/store.ts';
import type { Reading } from './reading.ts';
import { takeSteps } from './steps.ts';

export interface ComparisonOptions {
  readonly store: Pick<Store, 'loadKnown'>;
  /** Read at each poll, as it can change at run time. */
  readonly missingAfter: () => number;
}

/** Result of comparing the listings of a poll with the known records. */
export interface Comparison {
  /** Version of the known records, which the commit checks. */
  readonly version: number;
  /** Token of the known records, for the commit. */
  readonly token: KnownProject['token'];
  /** Changes to store, by kind; kinds without any are absent. */
  readonly changes: ReadonlyMap<Kind, Changes>;
  readonly answers: ReadonlyMap<Kind, RememberedAnswer>;
}

/**
 * Compares the listings of a poll with the stored records. `memory` holds summaries of the last listings; `at` is the time
 * of the poll, epoch ms.
 * @throws {StoreError}
 */
export type Compare = (
  project: string,
  readings: readonly Reading[],
  memory: ReadonlyMap<Kind, ListingMemory>,
  at: number,
) => Promise<Comparison>;

/** Creates a function that compares the listings of a poll with the stored records. */
export function createComparison({ store, missingAfter }: ComparisonOptions): Compare {
  /** Loads the records that the listings can change: all of them only for a listing that was read whole. */
  async function loadAffected(
    project: string,
    readings: readonly Reading[],
    memory: ReadonlyMap<Kind, ListingMemory>,
  ): Promise<KnownProject | undefined> {
    const kinds: Kind[] = [];
    const only = new Map<Kind, readonly string[]>();
    for (const reading of readings) {
      if ('error' in reading) continue;
      const { kind, answer } = reading;
      const missing = memory.get(kind)?.missing ?? [];
      if (answer.unchanged && missing.length === 0) continue;
      kinds.push(kind);
      if (answer.unchanged) only.set(kind, missing);
      else if (answer.vanished !== undefined) {
        const { records, idsWithoutStatus } = answer.listing;
        only.set(kind, [...records.keys(), ...idsWithoutStatus, ...answer.vanished, ...missing]);
      }
    }
    return kinds.length === 0 ? undefined : await store.loadKnown(project, kinds, only);
  }

  function* compare(
    readings: readonly Reading[],
    known: KnownProject | undefined,
    memory: ReadonlyMap<Kind, ListingMemory>,
    at: number,
  ): Steps<Comparison> {
    const changes = new Map<Kind, Changes>();
    const answers = new Map<Kind, RememberedAnswer>();
    const limit = missingAfter();
    for (const reading of readings) {
      if ('error' in reading) continue;
      const { kind, answer } = reading;
      const before = known?.listings.get(kind);
      let missing: readonly string[] = [];
      if (before !== undefined) {
        const complete = memory.get(kind)?.complete ?? false;
        const change = yield* answer.unchanged
          ? detectRepeatedAbsence(before, complete, limit)
          : compareListing(before, answer.listing, { at, missingAfter: limit });
        missing = yield* missingIds(before, change);
        if (hasChanges(change)) changes.set(kind, change);
      }
      answers.set(kind, { summary: summaryOf(answer), missing });
    }
    return { version: known?.version ?? 0, token: known?.token, changes, answers };
  }

  return async (project, readings, memory, at) => {
    const known = await loadAffected(project, readings, memory);
    return await takeSteps(compare(readings, known, memory, at));
  };
}

function hasChanges(changes: Changes): boolean {
  return changes.baseline || changes.records.length > 0;
}
