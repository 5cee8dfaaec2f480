-- What the service says that prompts belong to. Rows of earlier versions get it with the first listing that is read whole.

-- Texts of a project's experiments, datasets and metrics.
CREATE TABLE label (
  label_id INTEGER PRIMARY KEY,
  project_key INTEGER NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (project_key, text)
) STRICT;

-- Labels; NULL without one.
ALTER TABLE record ADD COLUMN experiment INTEGER;
ALTER TABLE record ADD COLUMN dataset INTEGER;
ALTER TABLE record ADD COLUMN metric INTEGER;

-- The prompts of a project with the same experiment (src/domain/experiment.ts).
CREATE TABLE experiment (
  project_key INTEGER NOT NULL,
  -- Its name.
  label_id INTEGER NOT NULL,
  -- Prompts that are not gone, by status.
  pending INTEGER NOT NULL,
  running INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  unknown INTEGER NOT NULL,
  -- The first move since it was reopened, and the last of all.
  started_at INTEGER,
  moved_at INTEGER,
  -- When it was first seen without unfinished prompts; NULL while it has some.
  ended_at INTEGER,
  -- When that was confirmed.
  finished_at INTEGER,
  PRIMARY KEY (project_key, label_id)
) STRICT, WITHOUT ROWID;

-- Those that the next listing can finish.
CREATE INDEX experiment_finishing ON experiment (project_key)
  WHERE started_at IS NOT NULL AND ended_at IS NOT NULL AND finished_at IS NULL;

-- An experiment that finished, as it was then.
CREATE TABLE finish (
  -- Never used twice, not even after retention.
  finish_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_key INTEGER NOT NULL,
  label_id INTEGER NOT NULL,
  at INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  unknown INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL
) STRICT;

CREATE INDEX finish_project ON finish (project_key);
CREATE INDEX finish_at ON finish (at);
