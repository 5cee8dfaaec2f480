import { randomUUID } from 'node:crypto';
import type { Ownership } from '../../../coordination/ports.ts';
import { inTurns } from '../../../domain/turns.ts';
import type { StoreError } from '../../../monitor/errors.ts';
import type { Observer } from '../../../monitor/events.ts';
import type { Clock } from '../../../monitor/ports/clock.ts';
import type {
  Committed,
  OwnedSnapshot,
  PollCommit,
  PollHealth,
  ProjectFigures,
} from '../../../monitor/ports/store.ts';
import { Figures } from '../../figures.ts';
import { HealthQueue } from '../../health-queue.ts';
import { outcomeOf, toFinishes } from '../../outcome.ts';
import { findHealth } from '../../projects.ts';
import { BACKLOG, type BacklogColumns, toBacklog } from '../../reads.ts';
import { type ErrorTotalColumns, toErrorTotals, unknownProject } from '../../rows.ts';
import type { Db } from '../../sql.ts';
import type { Database, Statement } from '../database.ts';
import { commitOf, type CommitRow, MADE, type PollStatement, withIds } from '../sql/poll-commit.ts';
import { FLUSH, flushInput, type WaitingHealth } from '../sql/projects.ts';

const REPEAT_AFTER_MS = 500;
/** How often the totals by error_id are read again for scrapes, ms. */
const READ_TOTALS_EVERY_MS = 60_000;
/** Number of projects whose rows are converted in one turn of the event loop. */
export const PROJECTS_PER_TURN = 250;

/** Selects the totals by error_id of the configured projects of a worker, also of those without any. */
export const TOTALS: Statement = {
  text: `SELECT p.id, coalesce(json_agg(json_build_array(e.label, e.count, e.first_seen_at))
      FILTER (WHERE e.label IS NOT NULL), '[]') AS errors
    FROM evalwatch.project p LEFT JOIN evalwatch.error_total e ON e.project_key = p.project_key
    WHERE p.owner = $1 AND p.removed_at IS NULL GROUP BY p.id`,
};

interface TotalsRow {
  readonly id: string;
  readonly errors: readonly ErrorTotalColumns[];
}

/** Selects what a scrape reads besides the figures in memory. */
export const SCRAPE: Statement = {
  name: 'scrape',
  text: `
SELECT (SELECT count(*) FROM evalwatch.project WHERE removed_at IS NULL) AS configured,
  backlog.count, backlog.oldest_at
FROM (${BACKLOG}) AS backlog`,
};

interface ScrapeRow extends BacklogColumns {
  readonly configured: number;
}

type Run = <Row>(statement: Statement, values: readonly unknown[]) => Promise<readonly Row[]>;

export interface OwnedProjectsOptions {
  /** Name of this worker. */
  readonly worker: string;
  readonly database: Pick<Database, 'attempt' | 'query'>;
  /** Both emit `store.commit_failed` for a failure; `write` also emits `store.committed`. */
  readonly reads: Db;
  readonly write: Run;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Aborts when a shutdown has waited long enough. */
  readonly signal: AbortSignal;
}

/**
 * The projects that this worker owns, and the commits of their polls. The database refuses a commit once the project has
 * another token than the one that the poll was computed from (docs/protocol.md).
 */
export class OwnedProjects implements Ownership {
  readonly tokens = new Map<string, string>();
  readonly figures = new Figures();
  readonly #options: OwnedProjectsOptions;
  readonly #health: HealthQueue<WaitingHealth>;
  readonly #committing = new Set<string>();
  /** When the totals were last read, monotonic ms. */
  #totalsReadAt = -Infinity;

  constructor(options: OwnedProjectsOptions) {
    this.#options = options;
    this.#health = new HealthQueue((waiting) => this.#writeHealth(waiting), options.clock);
  }

  own(project: string, token: string, figures?: ProjectFigures): void {
    this.tokens.set(project, token);
    this.figures.set(project, figures);
  }

  disown(project: string): void {
    this.tokens.delete(project);
    this.figures.set(project, undefined);
    void this.#health.drop(project);
  }

  isCommitting(project: string): boolean {
    return this.#committing.has(project);
  }

  flush(): Promise<void> {
    return this.#health.flush();
  }

  async commitPoll(poll: PollCommit): Promise<Committed | undefined> {
    const { project, health } = poll;
    const token = this.tokens.get(project);
    const hasListings = poll.listings.size > 0;
    if (token === undefined) return await this.#refuse(project, token);
    // A poll that has loaded nothing has no token to compare.
    if (poll.token !== token && (hasListings || poll.token !== '')) {
      return await this.#refuse(project, token);
    }
    if (hasListings) return await this.#commit(poll, token);
    await this.#health.add(project, { token, health });
    if (this.tokens.get(project) === token) this.figures.change(project, health);
    return { transitions: [], finishes: [] };
  }

  /** `Store.keepHealth`; nothing for a project that this worker does not own. */
  keepHealth(project: string, health: PollHealth): void {
    const token = this.tokens.get(project);
    if (token === undefined) return;
    this.#health.keep(project, { token, health });
    this.figures.change(project, health);
  }

  /**
   * Returns the configured projects among these. Reads only what concerns the others as well, and once a minute the totals by
   * error_id.
   * @throws {StoreError}
   */
  async snapshot(): Promise<OwnedSnapshot> {
    await this.#readTotals();
    const [row] = await this.#options.database.query<ScrapeRow>(SCRAPE);
    if (row === undefined) throw new Error('an aggregate without groups has one row');
    return {
      projects: this.figures.snapshots(),
      configured: row.configured,
      backlog: toBacklog(row),
    };
  }

  /** Writes waiting health one last time. Ignores a failure of the database. */
  async close(): Promise<void> {
    await this.#health.close();
  }

  /**
   * The totals in memory are those of the settlements and of the pruning of this worker. What a former owner settles late, what
   * others prune, and what was done although its answer was lost, is read here.
   */
  async #readTotals(): Promise<void> {
    const { database, clock, worker } = this.#options;
    const last = this.#totalsReadAt;
    if (clock.monotonic() - last < READ_TOTALS_EVERY_MS) return;
    this.#totalsReadAt = clock.monotonic();
    const before = new Map([...this.tokens.keys()].map((id) => [id, this.figures.errors(id)]));
    try {
      const rows = await database.query<TotalsRow>(TOTALS, [worker]);
      const set = ({ id, errors }: TotalsRow) => {
        // A total that went back to what was read before a settlement would be a reset of the counter.
        const isNewer = this.figures.errors(id) !== before.get(id);
        if (!isNewer) this.figures.setErrors(id, toErrorTotals(errors));
      };
      await inTurns(rows, set, PROJECTS_PER_TURN);
    } catch (error) {
      this.#totalsReadAt = last;
      throw error;
    }
  }

  async #commit(poll: PollCommit, token: string): Promise<Committed | undefined> {
    const { project } = poll;
    const before = this.figures.summaries(project);
    if (before === undefined) return await this.#refuse(project, token);
    await this.#health.drop(project);
    const outcome = await outcomeOf(this.#options.reads, poll, before);
    if (this.tokens.get(project) !== token) return await this.#refuse(project, token);
    const next = randomUUID();
    this.#committing.add(project);
    try {
      const row = await this.#send(poll, commitOf(poll, outcome, { token, next }), next);
      if (row === undefined) return await this.#refuse(project, token);
      if (this.tokens.get(project) === token) {
        this.tokens.set(project, next);
        this.figures.change(project, poll.health, outcome.summaries);
      }
      return {
        transitions: withIds(poll, row.transition_ids ?? []),
        finishes: toFinishes(poll, outcome, row.finish_ids ?? []),
      };
    } finally {
      this.#committing.delete(project);
    }
  }

  /**
   * Sends a commit, and sends the same statement again while its answer is lost: it is made at most once, because it replaces
   * the token that it names. Then the rows show whether an earlier attempt was made. Undefined if the commit was refused.
   * @throws {StoreError} if it was not made, and after the abort
   */
  async #send(
    { project }: PollCommit,
    { statement, values }: PollStatement,
    next: string,
  ): Promise<CommitRow | undefined> {
    const { database, clock, emit, signal } = this.#options;
    for (let isRepeated = false; ; isRepeated = true) {
      const started = clock.monotonic();
      const sent = await database.attempt<CommitRow>(statement, values);
      const found =
        sent.rows?.length === 0 && isRepeated
          ? await database.attempt<CommitRow>(MADE, [project, next])
          : sent;
      const { rows, error, unknown } = found;
      if (error === undefined) {
        const [row] = rows;
        if (row === undefined || row.is_made === false) return undefined;
        emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
        return row;
      }
      emit({ type: 'store.commit_failed', reason: error.reason, error });
      if ((!unknown && !isRepeated) || signal.aborted) throw error;
      await clock.sleep(REPEAT_AFTER_MS);
    }
  }

  async #writeHealth(waiting: ReadonlyMap<string, WaitingHealth>): Promise<void> {
    const { write } = this.#options;
    const written = await write<{ readonly id: string }>(FLUSH, [flushInput(waiting)]);
    const stored = new Set(written.map(({ id }) => id));
    for (const [project, { token }] of waiting) {
      if (!stored.has(project)) this.#drop(project, token);
    }
  }

  /** Disowns a project whose commit under this token was refused, and emits that. */
  #drop(project: string, token: string | undefined): void {
    if (this.tokens.get(project) === token) this.disown(project);
    this.#options.emit({ type: 'store.commit_refused', project });
  }

  /** @throws {StoreError} if there is no such project */
  async #refuse(project: string, token: string | undefined): Promise<undefined> {
    this.#drop(project, token);
    if ((await findHealth(this.#options.reads, project)) !== undefined) return undefined;
    const error: StoreError = unknownProject(project);
    this.#options.emit({ type: 'store.commit_failed', reason: error.reason, error });
    throw error;
  }
}
