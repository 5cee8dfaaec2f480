import type { KnownListing, KnownRecord } from '../../../domain/record.ts';
import type { Kind, WaitingStatus } from '../../../domain/status.ts';
import type { Changes } from '../../../domain/transition.ts';
import type { KnownProject, PollCommit } from '../../../monitor/ports/store.ts';
import { unknownProject } from '../../rows.ts';
import type { Statement } from '../database.ts';
import { knownQuery, type KnownRow, OLDEST_OTHERS, type OnlyThese, toListings } from './known.ts';
import { lostOldest, nextSummary, oldestOf, type Summary } from './summary.ts';
import { toStored } from './text.ts';

export interface Summaries {
  /** As `Store.loadKnown`; it is remembered until the poll that it was loaded for is committed. */
  load(project: string, kinds: readonly Kind[], only?: OnlyThese): Promise<KnownProject>;
  /** What follows from a poll for each of its listings, if the project still has its version. */
  after(poll: PollCommit): Promise<ReadonlyMap<Kind, ListingAfter>>;
  forget(project: string): void;
}

export interface ListingAfter {
  readonly summary: Summary;
  /** Those of the poll's records that were known before it, and perhaps others. */
  readonly before: ReadonlyMap<string, KnownRecord>;
}

interface Loaded {
  readonly version: number;
  readonly summaries: Readonly<Record<Kind, Summary>>;
  readonly listings: ReadonlyMap<Kind, KnownListing>;
  readonly only: OnlyThese;
}

type Read = <Row>(statement: Statement, values: readonly unknown[]) => Promise<readonly Row[]>;

/**
 * What a scrape shows of a project is worked out here from what its poll was computed from, and not by the database: that
 * took the statement of a commit three times as long.
 */
export function createSummaries(read: Read): Summaries {
  const remembered = new Map<string, Loaded>();

  async function load(project: string, kinds: readonly Kind[], only: OnlyThese): Promise<Loaded> {
    const { statement, values } = knownQuery(project, kinds, only);
    const [row] = await read<KnownRow>(statement, values);
    if (row === undefined) throw unknownProject(project);
    const { version, summaries } = row;
    return { version, summaries, listings: toListings(row, kinds), only };
  }

  async function loadedFor({ project, version, listings }: PollCommit): Promise<Loaded> {
    const loaded = remembered.get(project);
    remembered.delete(project);
    const suffices =
      loaded?.version === version &&
      listings.entries().every(([kind, { records }]) => {
        const ids = new Set(loaded.only.get(kind) ?? records.map(({ id }) => id));
        return loaded.listings.has(kind) && records.every(({ id }) => ids.has(id));
      });
    if (suffices) return loaded;
    const changed = Array.from(listings, ([kind, { records }]) => {
      return [kind, records.map(({ id }) => id)] as const;
    });
    return await load(project, [...listings.keys()], new Map(changed));
  }

  async function oldestOthers(
    project: string,
    kind: Kind,
    { records }: Changes,
    statuses: readonly WaitingStatus[],
    { listings, only }: Loaded,
  ): Promise<ReadonlyMap<WaitingStatus, number | undefined>> {
    const changed = new Set(records.map(({ id }) => id));
    const known = listings.get(kind)?.records ?? new Map();
    if (!only.has(kind)) {
      const others = [...known.values()].filter(({ id }) => !changed.has(id));
      return new Map(statuses.map((status) => [status, oldestOf(others, status)]));
    }
    const rows = await read<{ readonly status: WaitingStatus; readonly since: number }>(
      OLDEST_OTHERS,
      [toStored(project), kind, statuses, Array.from(changed, (id) => toStored(id))],
    );
    const found = new Map(rows.map(({ status, since }) => [status, since]));
    return new Map(statuses.map((status) => [status, found.get(status)]));
  }

  return {
    load: async (project, kinds, only = new Map()) => {
      const loaded = await load(project, kinds, only);
      remembered.set(project, loaded);
      return { version: loaded.version, listings: loaded.listings };
    },
    after: async (poll) => {
      const loaded = await loadedFor(poll);
      const listings = Array.from(poll.listings, async ([kind, changes]) => {
        const old = loaded.summaries[kind];
        const before = loaded.listings.get(kind)?.records ?? new Map();
        const lost = lostOldest(old, changes, before);
        const others =
          lost.length === 0
            ? new Map()
            : await oldestOthers(poll.project, kind, changes, lost, loaded);
        const summary = nextSummary(old, changes, before, others, poll.at);
        return [kind, { summary, before }] as const;
      });
      return new Map(await Promise.all(listings));
    },
    forget: (project) => {
      remembered.delete(project);
    },
  };
}
