-- Times are epoch milliseconds, booleans 0 or 1.

CREATE TABLE project (
  project_key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  configured_at INTEGER NOT NULL,
  -- When it left the configuration; NULL while it is in it.
  removed_at INTEGER,
  -- Changes with every commit of a listing.
  version INTEGER NOT NULL DEFAULT 0,
  up INTEGER NOT NULL DEFAULT 0,
  consecutive_failures INTEGER NOT NULL DEFAULT 0,
  reason TEXT,
  last_poll_at INTEGER,
  last_success_at INTEGER
) STRICT;

-- The prompts or the datasets of a project. Rows without a project are deleted in small parts.
CREATE TABLE listing (
  listing_key INTEGER PRIMARY KEY,
  project_key INTEGER REFERENCES project ON DELETE SET NULL,
  kind TEXT NOT NULL,
  baselined INTEGER NOT NULL,
  gone_total INTEGER NOT NULL,
  last_failure_at INTEGER,
  UNIQUE (project_key, kind)
) STRICT;

CREATE TABLE record (
  listing_key INTEGER NOT NULL REFERENCES listing,
  id TEXT NOT NULL,
  status TEXT NOT NULL,
  status_raw TEXT,
  name TEXT,
  timestamp TEXT,
  since INTEGER NOT NULL,
  missing INTEGER NOT NULL,
  gone INTEGER NOT NULL,
  PRIMARY KEY (listing_key, id)
) STRICT, WITHOUT ROWID;

-- Covers the counts of a scrape, which take a tenth of the time that they take without it.
CREATE INDEX record_aggregate ON record (listing_key, gone, status, since, missing);

CREATE TABLE transition (
  -- Never used twice, not even after retention.
  transition_id INTEGER PRIMARY KEY AUTOINCREMENT,
  listing_key INTEGER NOT NULL REFERENCES listing,
  record_id TEXT NOT NULL,
  record_name TEXT,
  at INTEGER NOT NULL,
  from_status TEXT NOT NULL,
  to_status TEXT NOT NULL
) STRICT;

CREATE INDEX transition_listing ON transition (listing_key);
CREATE INDEX transition_at ON transition (at);

-- Keeps the counts of transitions that were deleted.
CREATE TABLE transition_total (
  listing_key INTEGER NOT NULL REFERENCES listing ON DELETE CASCADE,
  from_status TEXT NOT NULL,
  to_status TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (listing_key, from_status, to_status)
) STRICT, WITHOUT ROWID;

-- One row for each move of a prompt to FAILED; pending until settled_at. A settled one without a reason has an error_info.
CREATE TABLE failure (
  transition_id INTEGER PRIMARY KEY REFERENCES transition ON DELETE CASCADE,
  -- That of its transition, once more for the index.
  listing_key INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  useless_tries INTEGER NOT NULL DEFAULT 0,
  first_try_at INTEGER,
  last_try_at INTEGER,
  next_try_at INTEGER NOT NULL DEFAULT 0,
  settled_at INTEGER,
  error_id TEXT,
  error_msg TEXT,
  error_msg_truncated INTEGER NOT NULL DEFAULT 0,
  reason TEXT
) STRICT;

-- For the query of each second: a project's oldest pending failures that are due.
CREATE INDEX failure_pending ON failure (listing_key, transition_id, next_try_at, last_try_at)
WHERE settled_at IS NULL;
