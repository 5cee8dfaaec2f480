import { lostOldest, nextSummary, type Summary } from '../../../domain/summary.ts';
import type { Kind, UnfinishedStatus } from '../../../domain/status.ts';
import type { Changes } from '../../../domain/transition.ts';
import type { KnownProject, PollCommit } from '../../../monitor/ports/store.ts';
import { unknownProject } from '../../rows.ts';
import type { Statement } from '../database.ts';
import { knownQuery, type KnownRow, OLDEST_OTHERS, type OnlyThese, toListings } from './known.ts';

export interface Summaries {
  /** `Store.loadKnown`. */
  load(project: string, kinds: readonly Kind[], only?: OnlyThese): Promise<KnownProject>;
  /** Computes the next summary of each listing of a poll, provided that the project still has the poll's token. */
  after(poll: PollCommit): Promise<ReadonlyMap<Kind, Summary>>;
}

/** `known` of a `KnownProject`. */
class LoadedSummaries {
  readonly of: Readonly<Record<Kind, Summary>>;

  constructor(summaries: Readonly<Record<Kind, Summary>>) {
    this.of = summaries;
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
    only: OnlyThese = new Map(),
  ): Promise<KnownProject & { readonly known: LoadedSummaries }> {
    const { statement, values } = knownQuery(project, kinds, only);
    const [row] = await read<KnownRow>(statement, values);
    if (row === undefined) throw unknownProject(project);
    const known = new LoadedSummaries(row.summaries);
    return { token: row.token, listings: toListings(row, kinds), known };
  }

  async function oldestOthers(
    project: string,
    kind: Kind,
    statuses: readonly UnfinishedStatus[],
    { records }: Changes,
  ): Promise<NonNullable<Summary['oldest']>> {
    const changed = records.map(({ id }) => id);
    const rows = await read<{ readonly status: UnfinishedStatus; readonly since: number }>(
      OLDEST_OTHERS,
      [project, kind, statuses, changed],
    );
    return Object.fromEntries(rows.map(({ status, since }) => [status, since]));
  }

  return {
    load,
    after: async ({ project, at, known, listings }) => {
      const summaries = known instanceof LoadedSummaries ? known : (await load(project, [])).known;
      const next = Array.from(listings, async ([kind, changes]) => {
        const before = summaries.of[kind];
        const lost = lostOldest(before, changes.summary);
        const others =
          lost.length > 0 ? await oldestOthers(project, kind, lost, changes) : undefined;
        return [kind, nextSummary(before, changes.summary, at, others)] as const;
      });
      return new Map(await Promise.all(next));
    },
  };
}
