-- The tables get the shape that they have in PostgreSQL: rows have the key of their project, and each listing has its
-- figures as JSON in the row of its project (src/domain/summary.ts). No table refers to another one by a foreign key.
-- Two orders save memory with millions of rows: the old tables are dropped last, because SQLite keeps a copy of each freed page
-- that a statement uses again, and the indexes come before the rows, because SQLite would sort them at once.

-- A listing without a project becomes a project that is being deleted.
CREATE TABLE old_listing (
  listing_key INTEGER PRIMARY KEY,
  project_key INTEGER NOT NULL,
  kind TEXT NOT NULL
) STRICT;

INSERT INTO old_listing
SELECT listing_key,
  coalesce(project_key, (SELECT coalesce(max(project_key), 0) FROM project) + listing_key), kind
FROM listing;

-- Keys of deleted projects, whose rows are deleted in small parts.
CREATE TABLE waste (project_key INTEGER PRIMARY KEY) STRICT;

INSERT INTO waste
SELECT DISTINCT project_key FROM old_listing WHERE project_key NOT IN (SELECT project_key FROM project);

CREATE TABLE new_project (
  -- Never used twice: rows of a deleted project can still have its key.
  project_key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  configured_at INTEGER NOT NULL,
  -- When it left the configuration; NULL while it is in it.
  removed_at INTEGER,
  -- Another one after every commit of a listing.
  token TEXT NOT NULL,
  datasets TEXT NOT NULL DEFAULT '{}',
  prompts TEXT NOT NULL DEFAULT '{}',
  up INTEGER NOT NULL DEFAULT 0,
  consecutive_failures INTEGER NOT NULL DEFAULT 0,
  last_poll_at INTEGER,
  last_success_at INTEGER,
  reason TEXT,
  -- The first successful poll after which no poll has been missing; NULL before the next one.
  steady_since INTEGER
) STRICT;

INSERT INTO sqlite_sequence (name, seq)
SELECT 'new_project', max(
  (SELECT coalesce(max(project_key), 0) FROM project), (SELECT coalesce(max(project_key), 0) FROM waste));

-- The patch removes null values.
WITH listed AS (SELECT * FROM record WHERE gone = 0),
summary AS MATERIALIZED (
  SELECT l.project_key, l.kind, json_patch('{}', json_object(
    'baselined', json(iif(l.baselined, 'true', 'false')),
    'missing', (SELECT count(*) FROM listed r WHERE r.listing_key = l.listing_key AND r.missing > 0),
    'gone', l.gone_total,
    'failedAt', l.last_failure_at,
    'counts', json((SELECT json_group_object(status, records) FROM (
      SELECT status, count(*) AS records FROM listed r WHERE r.listing_key = l.listing_key GROUP BY status))),
    'oldest', json((SELECT json_group_object(status, since) FROM (
      SELECT status, min(since) AS since FROM listed r
      WHERE r.listing_key = l.listing_key AND status IN ('PENDING', 'RUNNING') GROUP BY status))),
    'totals', json((SELECT json_group_array(json_array(from_status, to_status, count))
      FROM transition_total t WHERE t.listing_key = l.listing_key)))) AS figures
  FROM listing l WHERE l.project_key IS NOT NULL
)
INSERT INTO new_project
SELECT project_key, id, configured_at, removed_at, CAST(version AS TEXT),
  coalesce((SELECT figures FROM summary s WHERE s.project_key = p.project_key AND s.kind = 'dataset'), '{}'),
  coalesce((SELECT figures FROM summary s WHERE s.project_key = p.project_key AND s.kind = 'prompt'), '{}'),
  up, consecutive_failures, last_poll_at, last_success_at, reason, steady_since
FROM project p;

CREATE TABLE new_record (
  project_key INTEGER NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT,
  since INTEGER NOT NULL,
  missing INTEGER NOT NULL,
  gone INTEGER NOT NULL,
  status TEXT NOT NULL,
  status_raw TEXT,
  timestamp TEXT,
  PRIMARY KEY (project_key, kind, id)
) STRICT, WITHOUT ROWID;

-- Finds the prompts that wait the longest.
CREATE INDEX record_waiting ON new_record (project_key, kind, status, since)
WHERE NOT gone AND status IN ('PENDING', 'RUNNING');

INSERT INTO new_record
SELECT l.project_key, l.kind, r.id, r.name, r.since, r.missing, r.gone, r.status, r.status_raw, r.timestamp
FROM old_listing l CROSS JOIN record r ON r.listing_key = l.listing_key;

CREATE TABLE new_settlement (
  -- Never used twice, not even after retention.
  settlement_id INTEGER PRIMARY KEY AUTOINCREMENT,
  transition_id INTEGER NOT NULL UNIQUE
) STRICT;

INSERT INTO sqlite_sequence (name, seq)
SELECT 'new_settlement', seq FROM sqlite_sequence WHERE name = 'settlement';

INSERT INTO new_settlement SELECT settlement_id, transition_id FROM settlement ORDER BY settlement_id;

-- One row for each move of a prompt to FAILED; pending until settled_at. A settled one without a reason has an error_info.
CREATE TABLE new_failure (
  transition_id INTEGER PRIMARY KEY,
  -- That of its transition, once more for the index.
  project_key INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  useless_tries INTEGER NOT NULL DEFAULT 0,
  first_try_at INTEGER,
  last_try_at INTEGER,
  next_try_at INTEGER NOT NULL DEFAULT 0,
  settled_at INTEGER,
  -- The cause by version 1 of the grouping, by which failures that were settled before are still found.
  cause TEXT,
  -- The cause by version 2 (docs/specification.md#causes); NULL while the failure is pending.
  cause_id TEXT,
  error_id TEXT,
  error_msg_truncated INTEGER NOT NULL DEFAULT 0,
  reason TEXT,
  -- Comes last: a long text has pages of its own, which are read only for the columns in them and after them.
  error_msg TEXT
) STRICT;

DROP INDEX failure_pending;
DROP INDEX failure_cause;
DROP INDEX failure_cause_id;
-- For the query of each second: a project's oldest pending failures that are due.
CREATE INDEX failure_pending ON new_failure (project_key, transition_id, next_try_at, last_try_at)
WHERE settled_at IS NULL;
-- Both find the failures of a cause.
CREATE INDEX failure_cause ON new_failure (cause, project_key, transition_id) WHERE cause IS NOT NULL;
CREATE INDEX failure_cause_id ON new_failure (cause_id, project_key, transition_id) WHERE cause_id IS NOT NULL;
-- Counts the causes of a time without reading rows, which are as large as their messages.
CREATE INDEX failure_project ON new_failure (project_key, transition_id, cause_id) WHERE cause_id IS NOT NULL;

INSERT INTO new_failure
SELECT f.transition_id, l.project_key, f.tries, f.useless_tries, f.first_try_at, f.last_try_at, f.next_try_at,
  f.settled_at, f.cause, f.cause_id, f.error_id, f.error_msg_truncated, f.reason, f.error_msg
FROM failure f CROSS JOIN old_listing l ON l.listing_key = f.listing_key ORDER BY f.transition_id;

CREATE TABLE new_transition (
  -- Never used twice, not even after retention.
  transition_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_key INTEGER NOT NULL,
  at INTEGER NOT NULL,
  -- That of the commit. Only PostgreSQL needs it.
  token TEXT,
  kind TEXT NOT NULL,
  from_status TEXT NOT NULL,
  to_status TEXT NOT NULL,
  record_id TEXT NOT NULL,
  record_name TEXT
) STRICT;

DROP INDEX transition_at;
DROP INDEX transition_failed;
CREATE INDEX transition_project ON new_transition (project_key);
CREATE INDEX transition_at ON new_transition (at);
-- Counts the failures of a project since a time without reading its transitions.
CREATE INDEX transition_failed ON new_transition (project_key, at) WHERE kind = 'prompt' AND to_status = 'FAILED';

INSERT INTO sqlite_sequence (name, seq)
SELECT 'new_transition', seq FROM sqlite_sequence WHERE name = 'transition';

INSERT INTO new_transition
SELECT t.transition_id, l.project_key, t.at, NULL, l.kind, t.from_status, t.to_status, t.record_id, t.record_name
FROM transition t CROSS JOIN old_listing l ON l.listing_key = t.listing_key ORDER BY t.transition_id;

CREATE TABLE new_prompt_duration (
  project_key INTEGER NOT NULL,
  status TEXT NOT NULL,
  -- Days since 1970-01-01 UTC.
  day INTEGER NOT NULL,
  -- Durations up to 1.15^bucket seconds, and longer than those of the bucket before.
  bucket INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (project_key, status, day, bucket)
) STRICT, WITHOUT ROWID;

INSERT INTO new_prompt_duration
SELECT l.project_key, d.status, d.day, d.bucket, d.count
FROM prompt_duration d JOIN old_listing l ON l.listing_key = d.listing_key;

-- Settled failures by error_id (docs/specification.md#error-ids); keeps the counts of failures that were deleted.
CREATE TABLE new_error_total (
  project_key INTEGER NOT NULL,
  -- An error_id, or none or other.
  label TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_seen_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  PRIMARY KEY (project_key, label)
) STRICT, WITHOUT ROWID;

INSERT INTO new_error_total
SELECT l.project_key, e.label, e.count, e.first_seen_at, e.last_seen_at
FROM error_total e JOIN old_listing l ON l.listing_key = e.listing_key;

DROP TABLE transition_total;
DROP TABLE record;
DROP TABLE settlement;
DROP TABLE failure;
DROP TABLE transition;
DROP TABLE prompt_duration;
DROP TABLE error_total;
DROP TABLE old_listing;
DROP TABLE listing;
DROP TABLE project;

ALTER TABLE new_project RENAME TO project;
ALTER TABLE new_record RENAME TO record;
ALTER TABLE new_settlement RENAME TO settlement;
ALTER TABLE new_failure RENAME TO failure;
ALTER TABLE new_transition RENAME TO transition;
ALTER TABLE new_prompt_duration RENAME TO prompt_duration;
ALTER TABLE new_error_total RENAME TO error_total;
