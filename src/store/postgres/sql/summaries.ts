import type { KnownListing, KnownRecord } from '../../../domain/record.ts';
import type { Kind, UnfinishedStatus } from '../../../domain/status.ts';
import type { Changes } from '../../../domain/transition.ts';
import type { KnownProject, PollCommit } from '../../../monitor/ports/store.ts';
import { unknownProject } from '../../rows.ts';
import type { Statement } from '../database.ts';
import { knownQuery, type KnownRow, OLDEST_OTHERS, type OnlyThese, toListings } from './known.ts';
import { lostOldest, nextSummary, oldestOf, type Summary } from './summary.ts';

export interface Summaries {
  /** `Store.loadKnown`. */
  load(project: string, kinds: readonly Kind[], only?: OnlyThese): Promise<KnownProject>;
  /** Computes the next summary of each listing of a poll, provided that the project still has the poll's version. */
  after(poll: PollCommit): Promise<ReadonlyMap<Kind, ListingAfter>>;
}

export interface ListingAfter {
  readonly summary: Summary;
  /** Known records, among them all that the poll changes and that are not new. */
  readonly before: ReadonlyMap<string, KnownRecord>;
}

/** `known` of a `KnownProject`. */
class LoadedProject {
  readonly version: number;
  readonly summaries: Readonly<Record<Kind, Summary>>;
  readonly listings: ReadonlyMap<Kind, KnownListing>;
  readonly only: OnlyThese;

  constructor(row: KnownRow, kinds: readonly Kind[], only: OnlyThese) {
    this.version = row.version;
    this.summaries = row.summaries;
    this.listings = toListings(row, kinds);
    this.only = only;
  }
}

type Read = <Row>(statement: Statement, values: readonly unknown[]) => Promise<readonly Row[]>;

/**
 * Keeps the summaries that a scrape shows. They are computed here, from what the poll was computed from: computed by the
 * database they made the statement of a commit take three times as long.
 */
export function createSummaries(read: Read): Summaries {
  async function load(
    project: string,
    kinds: readonly Kind[],
    only: OnlyThese,
  ): Promise<LoadedProject> {
    const { statement, values } = knownQuery(project, kinds, only);
    const [row] = await read<KnownRow>(statement, values);
    if (row === undefined) throw unknownProject(project);
    return new LoadedProject(row, kinds, only);
  }

  async function loadChanged({ project, listings }: PollCommit): Promise<LoadedProject> {
    const changed = Array.from(listings, ([kind, { records }]) => {
      return [kind, records.map(({ id }) => id)] as const;
    });
    return await load(project, [...listings.keys()], new Map(changed));
  }

  async function oldestOthers(
    project: string,
    kind: Kind,
    { records }: Changes,
    statuses: readonly UnfinishedStatus[],
    { listings, only }: LoadedProject,
  ): Promise<ReadonlyMap<UnfinishedStatus, number | undefined>> {
    const changed = new Set(records.map(({ id }) => id));
    const known = listings.get(kind)?.records ?? new Map();
    if (!only.has(kind)) {
      const others = [...known.values()].filter(({ id }) => !changed.has(id));
      return new Map(statuses.map((status) => [status, oldestOf(others, status)]));
    }
    const rows = await read<{ readonly status: UnfinishedStatus; readonly since: number }>(
      OLDEST_OTHERS,
      [project, kind, statuses, [...changed]],
    );
    const found = new Map(rows.map(({ status, since }) => [status, since]));
    return new Map(statuses.map((status) => [status, found.get(status)]));
  }

  return {
    load: async (project, kinds, only = new Map()) => {
      const known = await load(project, kinds, only);
      return { token: String(known.version), listings: known.listings, known };
    },
    after: async (poll) => {
      const loaded = poll.known instanceof LoadedProject ? poll.known : await loadChanged(poll);
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
  };
}
