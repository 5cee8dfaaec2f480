import type {
  Beat,
  Coordinator,
  ListedProject,
  OwnedProject,
  WorkerIdentity,
} from '../../../coordination/ports.ts';
import { inTurns } from '../../../domain/turns.ts';
import { PROJECT_COLUMNS, type ProjectColumns, toProjectFigures } from '../../rows.ts';
import { forPostgres } from '../../sql.ts';
import type { Database, Statement } from '../database.ts';
import { PROJECTS_PER_TURN } from './owned-projects.ts';

// The statements of the protocol between workers (docs/protocol.md), but for those of commits. They run too seldom to be worth
// a kept plan. `now()` is the time at which the database began the statement: no worker's clock decides about ownership.

/** Maximum number of projects that one statement claims: more can take longer than a beat may. */
const MAX_CHANGED = 5000;

const LIVE = 'SELECT worker FROM evalwatch.worker WHERE expires_at > now()';
const IS_FREE = `(p.owner IS NULL OR p.owner NOT IN (${LIVE}))`;
const HAS_PENDING =
  'EXISTS (SELECT FROM evalwatch.failure f WHERE f.project_key = p.project_key AND f.settled_at IS NULL)';

/**
 * Selects whether the lease held until now. Each expired lease that is still there after a day is that of a worker that was
 * killed.
 */
const RENEW: Statement = {
  text: `
WITH dead AS (DELETE FROM evalwatch.worker WHERE expires_at < now() - interval '1 day' AND worker <> $1),
renewed AS (
  INSERT INTO evalwatch.worker (worker, expires_at, program_version, configuration)
  VALUES ($1, now() + $2 * interval '1 ms', $3, $4)
  ON CONFLICT (worker) DO UPDATE SET expires_at = excluded.expires_at,
    program_version = excluded.program_version, configuration = excluded.configuration
)
SELECT $1 IN (${LIVE}) AS was_held`,
};

const BEAT: Statement = {
  text: `
SELECT
  (SELECT coalesce(json_agg(json_build_array(worker, program_version, configuration) ORDER BY worker), '[]')
   FROM evalwatch.worker WHERE expires_at > now()) AS workers,
  coalesce(md5(string_agg(p.id, chr(10) ORDER BY p.id) FILTER (WHERE p.removed_at IS NULL)), '') AS configured,
  coalesce(bool_or(${IS_FREE} AND (p.removed_at IS NULL OR ${HAS_PENDING})), false) AS has_free
FROM evalwatch.project p`,
};

const LEAVE: Statement = {
  text: `
WITH released AS (
  UPDATE evalwatch.project SET owner = NULL, token = gen_random_uuid() WHERE owner = $1
)
DELETE FROM evalwatch.worker WHERE worker = $1`,
};

/** The share is that of this moment, so a statement that arrives late takes no more. */
const CLAIM: Statement = {
  text: `
WITH share AS MATERIALIZED (
  SELECT least(${MAX_CHANGED}, ceil(cardinality($2::text[])::numeric / count(*)) -
    (SELECT count(*) FROM evalwatch.project WHERE owner = $1 AND removed_at IS NULL))::integer AS missing
  FROM evalwatch.worker WHERE expires_at > now() AND configuration = $3
  HAVING bool_or(worker = $1)
),
configured AS MATERIALIZED (
  SELECT p.project_key FROM evalwatch.project p
  WHERE ${IS_FREE} AND p.removed_at IS NULL AND p.id IN (SELECT unnest($2::text[]))
  ORDER BY p.id
  LIMIT greatest(0, (SELECT coalesce(max(missing), 0) FROM share)) FOR UPDATE SKIP LOCKED
),
removed AS MATERIALIZED (
  SELECT p.project_key FROM evalwatch.project p
  WHERE ${IS_FREE} AND p.removed_at IS NOT NULL AND ${HAS_PENDING} AND EXISTS (SELECT FROM share)
  LIMIT ${MAX_CHANGED} FOR UPDATE SKIP LOCKED
)
UPDATE evalwatch.project p SET owner = $1, token = gen_random_uuid()
FROM (SELECT project_key FROM configured UNION ALL SELECT project_key FROM removed) AS free
WHERE p.project_key = free.project_key`,
};

const RELEASE: Statement = {
  text: `
UPDATE evalwatch.project p SET owner = NULL, token = gen_random_uuid()
FROM unnest($2::text[], $3::uuid[]) AS given(id, token)
WHERE p.id = given.id AND p.token = given.token AND p.owner = $1`,
};

const LIST: Statement = {
  text: `
SELECT p.id AS project, p.token, p.removed_at IS NOT NULL AS "isRemoved",
  p.removed_at IS NOT NULL AND ${HAS_PENDING} AS "hasPending"
FROM evalwatch.project p WHERE p.owner = $1`,
};

const LOAD: Statement = {
  text: `
SELECT p.token, ${forPostgres(PROJECT_COLUMNS, {}).text}
FROM evalwatch.project p WHERE p.owner = $1 AND p.id IN (SELECT unnest($2::text[]))`,
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
  text: `SELECT owner FROM evalwatch.project WHERE id = $1 AND owner IN (${LIVE})`,
};

interface BeatRow {
  readonly workers: readonly (readonly [id: string, version: string, configDigest: string])[];
  readonly configured: string;
  readonly has_free: boolean;
}

interface OwnedRow extends ProjectColumns {
  readonly token: string;
}

export function createCoordinator(database: Pick<Database, 'query'>, leaseMs: number): Coordinator {
  return {
    renew: async ({ id, version, configDigest }: WorkerIdentity): Promise<Beat> => {
      const values = [id, leaseMs, version, configDigest];
      const [lease] = await database.query<{ was_held: boolean }>(RENEW, values);
      const [row] = await database.query<BeatRow>(BEAT);
      const { workers = [], configured = '', has_free: hasFree = false } = row ?? {};
      return {
        workers: workers.map(([worker, programVersion, digest]) => {
          return { id: worker, version: programVersion, configDigest: digest };
        }),
        wasHeld: lease?.was_held === true,
        configured,
        hasFree,
      };
    },
    leave: async (worker) => {
      await database.query(LEAVE, [worker]);
    },
    claim: async ({ id, configDigest }, projects) => {
      await database.query(CLAIM, [id, projects, configDigest]);
    },
    release: async (worker, tokens) => {
      await database.query(RELEASE, [worker, [...tokens.keys()], [...tokens.values()]]);
    },
    list: (worker) => database.query<ListedProject>(LIST, [worker]),
    load: async (worker, projects) => {
      const rows = await database.query<OwnedRow>(LOAD, [worker, projects]);
      const owned: OwnedProject[] = [];
      const take = (row: OwnedRow) =>
        owned.push({ project: row.id, token: row.token, figures: toProjectFigures(row) });
      await inTurns(rows, take, PROJECTS_PER_TURN);
      return owned;
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
      const [row] = await database.query<{ owner: string }>(OWNER, [project]);
      return row?.owner;
    },
  };
}
