import type { KnownRecord } from '../../../domain/record.ts';
import type { Summary } from '../../../domain/summary.ts';
import type { Kind, UnfinishedStatus } from '../../../domain/status.ts';
import type { KnownProject, PollCommit } from '../../../monitor/ports/store.ts';
import { unknownProject } from '../../rows.ts';
import { KnownSummaries, summariesAfter } from '../../summaries.ts';
import type { Statement } from '../database.ts';
import { knownQuery, type KnownRow, OLDEST_OTHERS, type OnlyThese, toListings } from './known.ts';

export interface Summaries {
  /** `Store.loadKnown`. */
  load(project: string, kinds: readonly Kind[], only?: OnlyThese): Promise<KnownProject>;
  /** Computes the next summary of each listing of a poll, provided that the project still has the poll's token. */
  after(poll: PollCommit): Promise<ReadonlyMap<Kind, Summary>>;
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
  ): Promise<KnownProject & { readonly known: KnownSummaries }> {
    const { statement, values } = knownQuery(project, kinds, only);
    const [row] = await read<KnownRow>(statement, values);
    if (row === undefined) throw unknownProject(project);
    const known = new KnownSummaries(row.summaries);
    return { token: row.token, listings: toListings(row, kinds), known };
  }

  async function oldestOthers(
    project: string,
    kind: Kind,
    statuses: readonly UnfinishedStatus[],
    changed: readonly KnownRecord[],
  ): Promise<Summary['oldest']> {
    const rows = await read<{ readonly status: UnfinishedStatus; readonly since: number }>(
      OLDEST_OTHERS,
      [project, kind, statuses, changed.map(({ id }) => id)],
    );
    return Object.fromEntries(rows.map(({ status, since }) => [status, since]));
  }

  return {
    load,
    after: async (poll) => {
      const { project, listings } = poll;
      const known =
        poll.known instanceof KnownSummaries ? poll.known : (await load(project, [])).known;
      return await summariesAfter(poll, known, (kind, statuses) =>
        oldestOthers(project, kind, statuses, listings.get(kind)?.records ?? []),
      );
    },
  };
}
