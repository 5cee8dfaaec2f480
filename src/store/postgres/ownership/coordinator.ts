import type {
  Beat,
  Coordinator,
  OwnedProject,
  WorkerIdentity,
} from '../../../coordination/ports.ts';
import type { Clock } from '../../../monitor/ports/clock.ts';
import { HEALTH_COLUMNS, type HealthColumns, toHealth } from '../../rows.ts';
import type { Database, Statement } from '../database.ts';
import type { Epochs } from './epochs.ts';
import { LEASE_HOLDS } from './lease.ts';
import { type LeaseRow, watchLeases } from './lease-watch.ts';

/**
 * The statements below run too seldom to be worth a kept plan. `now()` is the time at which the database began the statement:
 * no worker's clock decides about ownership.
 */
const JOIN: Statement = {
  text: `
WITH lost AS (
  UPDATE evalwatch.project SET owner = NULL, epoch = nextval('evalwatch.epoch') WHERE owner = $1
)
INSERT INTO evalwatch.worker (worker, expires_at, program_version, config_digest)
VALUES ($1, now() + $2 * interval '1 ms', $3, $4)
ON CONFLICT (worker) DO UPDATE SET expires_at = excluded.expires_at,
  program_version = excluded.program_version, config_digest = excluded.config_digest`,
};

const RENEW: Statement = {
  text: `UPDATE evalwatch.worker SET expires_at = now() + $2 * interval '1 ms', config_digest = $3
    WHERE worker = $1 AND expires_at > now() RETURNING worker`,
};

const EXPIRES_US = '(extract(epoch FROM w.expires_at) * 1000000)::bigint';

/**
 * Also selects, for the asking worker, the totals of its projects, whether any is free, and the newest configuration. Finding
 * that out by a claim would read every project. The index gives the owners one by one; a removed project has none.
 */
const WORKERS: Statement = {
  text: `
WITH RECURSIVE owners AS (
  SELECT min(owner) AS owner FROM evalwatch.project
  UNION ALL
  SELECT (SELECT min(p.owner) FROM evalwatch.project p WHERE p.owner > o.owner)
  FROM owners o WHERE o.owner IS NOT NULL
),
mine AS MATERIALIZED (
  SELECT count(*) AS projects, coalesce(sum(epoch), 0)::bigint AS epochs FROM evalwatch.project WHERE owner = $1
)
SELECT w.worker, w.program_version, w.config_digest, ${LEASE_HOLDS} AS holds,
      ${EXPIRES_US} AS expires_us, extract(epoch FROM w.expires_at - now())::float8 * 1000 AS remaining_ms,
      mine.projects AS owned, mine.epochs AS owned_epochs,
      CASE WHEN w.worker = $1 THEN (
        EXISTS (SELECT FROM evalwatch.project WHERE owner IS NULL AND removed_at IS NULL)
        OR EXISTS (SELECT FROM owners WHERE owner NOT IN (
          SELECT worker FROM evalwatch.worker WHERE ${LEASE_HOLDS}))
      ) END AS has_free,
      CASE WHEN w.worker = $1 THEN c.epoch END AS configured_epoch,
      CASE WHEN w.worker = $1 THEN c.projects_digest END AS projects_digest
    FROM evalwatch.worker w CROSS JOIN evalwatch.configuration c
    LEFT JOIN mine ON w.worker = $1 ORDER BY w.worker`,
};

/** Deletes expired leases, which would hold again after a clock was set back, unless they were renewed meanwhile. */
const DELETE_EXPIRED: Statement = {
  text: `DELETE FROM evalwatch.worker w USING unnest($1::text[], $2::bigint[]) AS dead(worker, expires_us)
    WHERE w.worker = dead.worker AND ${EXPIRES_US} = dead.expires_us`,
};

const LEAVE: Statement = {
  text: `
WITH released AS (
  UPDATE evalwatch.project SET owner = NULL, epoch = nextval('evalwatch.epoch') WHERE owner = $1
)
DELETE FROM evalwatch.worker WHERE worker = $1`,
};

const OWNED: Statement = {
  text: 'SELECT id, epoch FROM evalwatch.project WHERE owner = $1',
};

/**
 * Raises the sequence above $4, the greatest epoch that this worker has had: a promoted standby that lost the last claims would
 * give their numbers again. Not by `setval`, which could lower it beside another claim.
 */
const CLAIM: Statement = {
  text: `
WITH raised AS MATERIALIZED (
  SELECT max(nextval('evalwatch.epoch'))
  FROM evalwatch.epoch CROSS JOIN LATERAL generate_series(1, $4 - last_value + (NOT is_called)::integer)
),
live AS MATERIALIZED (SELECT worker FROM evalwatch.worker WHERE ${LEASE_HOLDS}),
free AS MATERIALIZED (
  SELECT p.project_key FROM evalwatch.project p
  WHERE (p.owner IS NULL OR p.owner NOT IN (SELECT worker FROM live)) AND p.removed_at IS NULL
    AND p.id IN (SELECT unnest($2::text[])) AND $1 IN (SELECT worker FROM live)
  ORDER BY p.next_tick_at NULLS FIRST, p.id
  LIMIT $3 FOR UPDATE SKIP LOCKED
)
UPDATE evalwatch.project p SET owner = $1, epoch = nextval('evalwatch.epoch')
FROM free CROSS JOIN raised WHERE p.project_key = free.project_key
RETURNING p.id, p.epoch, p.next_tick_at, ${HEALTH_COLUMNS}`,
};

const RELEASE: Statement = {
  text: `UPDATE evalwatch.project SET owner = NULL, epoch = nextval('evalwatch.epoch')
    WHERE owner = $1 AND id IN (SELECT unnest($2::text[]))`,
};

/**
 * Takes the places that begin within the asked time, the first not in the past. A next place that is more than a second
 * further ahead than any can be was left by a clock that has been set back since, and is ignored. The time is read after the
 * wait for the row, because other workers may have taken places meanwhile.
 */
const GRANT: Statement = {
  text: `
WITH found AS MATERIALIZED (SELECT next_at FROM evalwatch.rate FOR UPDATE),
clock AS MATERIALIZED (SELECT next_at, clock_timestamp() AS time FROM found),
start AS (
  SELECT CASE WHEN next_at <= time + make_interval(secs => 1 + $3 / 1000.0 + 1 / $2::float8)
    THEN greatest(next_at, time) ELSE time END AS at, time
  FROM clock
),
slice AS MATERIALIZED (
  SELECT at, wait, greatest(0, least($1::integer, 1 + floor(($3 / 1000.0 - wait) * $2::float8)))::integer AS count
  FROM start, extract(epoch FROM at - time) AS wait
)
UPDATE evalwatch.rate SET next_at = slice.at + slice.count / $2::float8 * interval '1 second'
FROM slice WHERE slice.count > 0 RETURNING slice.count, slice.wait::float8 * 1000 AS wait_ms`,
};

const OWNER: Statement = {
  text: `SELECT w.worker, extract(epoch FROM w.expires_at - now())::float8 * 1000 AS remaining_ms
    FROM evalwatch.project p JOIN evalwatch.worker w ON w.worker = p.owner
    WHERE p.id = $1 AND ${LEASE_HOLDS}`,
};

interface WorkerRow extends LeaseRow {
  readonly program_version: string;
  readonly config_digest: string;
  readonly holds: boolean;
  /** Number of projects that the asking worker owns, and the sum of their epochs; null in the rows of others. */
  readonly owned: number | null;
  readonly owned_epochs: number | null;
  /** Whether a configured project has no owner whose lease holds; null in the rows of others. */
  readonly has_free: boolean | null;
  /** Number of the newest change of the configured projects, and their digest; null in the rows of others. */
  readonly configured_epoch: number | null;
  readonly projects_digest: string | null;
}

interface ClaimedRow extends HealthColumns {
  readonly id: string;
  readonly epoch: number;
  readonly next_tick_at: number | null;
}

export interface CoordinatorOptions {
  readonly database: Pick<Database, 'query'>;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly epochs: Epochs;
}

export function createCoordinator(options: CoordinatorOptions): Coordinator {
  const { database, clock, leaseMs, epochs } = options;
  const findExpired = watchLeases(clock);

  /** Counts the lease from before the request, so that it ends here before it ends in the database. */
  async function withLease(
    worker: string,
    renew: () => Promise<boolean>,
  ): Promise<Beat | undefined> {
    const lease = { until: clock.monotonic() + leaseMs, expiresAt: clock.now() + leaseMs };
    if (!(await renew())) return undefined;
    const rows = await database.query<WorkerRow>(WORKERS, [worker]);
    const expired = findExpired(rows).filter((row) => row.worker !== worker);
    if (expired.length > 0) {
      const times = expired.map((row) => row.expires_us);
      await database.query(DELETE_EXPIRED, [expired.map((row) => row.worker), times]);
    }
    const live = rows.filter((row) => row.holds && !expired.includes(row));
    const own = live.find((row) => row.worker === worker);
    // The expired leases still held for the query.
    const hasFree = own?.has_free === true || expired.length > 0;
    return {
      lease,
      workers: live.map(toIdentity),
      owned: { projects: own?.owned ?? 0, epochs: own?.owned_epochs ?? 0 },
      hasFree,
      configured: { epoch: own?.configured_epoch ?? 0, digest: own?.projects_digest ?? '' },
    };
  }

  return {
    join: async ({ id, version, configDigest }: WorkerIdentity) => {
      const beat = await withLease(id, async () => {
        await database.query(JOIN, [id, leaseMs, version, configDigest]);
        return true;
      });
      if (beat === undefined) throw new Error('a lease that has just begun cannot have expired');
      return beat;
    },
    beat: ({ id, configDigest }) =>
      withLease(id, async () => {
        return (await database.query(RENEW, [id, leaseMs, configDigest])).length > 0;
      }),
    leave: async (worker) => {
      await database.query(LEAVE, [worker]);
    },
    ownedBy: async (worker) => {
      const rows = await database.query<Pick<ClaimedRow, 'id' | 'epoch'>>(OWNED, [worker]);
      return new Map(rows.map(({ id, epoch }) => [id, epoch]));
    },
    claim: async (worker, projects, max) => {
      const rows = await database.query<ClaimedRow>(CLAIM, [
        worker,
        projects,
        max,
        epochs.newest(),
      ]);
      for (const { epoch } of rows) epochs.add(epoch);
      return rows.map(toOwnedProject);
    },
    release: async (worker, projects) => {
      await database.query(RELEASE, [worker, projects]);
    },
    grant: async (wanted, perSecond, withinMs) => {
      const [row] = await database.query<{ count: number; wait_ms: number }>(GRANT, [
        wanted,
        perSecond,
        withinMs,
      ]);
      return { count: row?.count ?? 0, startsInMs: row?.wait_ms ?? 0, spacingMs: 1000 / perSecond };
    },
    owner: async (project) => {
      const [row] = await database.query<{ worker: string; remaining_ms: number }>(OWNER, [
        project,
      ]);
      return row && { worker: row.worker, remainingMs: row.remaining_ms };
    },
  };
}

function toIdentity(row: WorkerRow): WorkerIdentity {
  return { id: row.worker, version: row.program_version, configDigest: row.config_digest };
}

function toOwnedProject(row: ClaimedRow): OwnedProject {
  return {
    project: row.id,
    epoch: row.epoch,
    nextTickAt: row.next_tick_at ?? undefined,
    health: toHealth(row),
  };
}
