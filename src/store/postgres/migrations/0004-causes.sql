-- Settled failures by error_id (docs/specification.md#error-ids); keeps the counts of failures that were deleted.
CREATE TABLE evalwatch.error_total (
  project_key bigint NOT NULL,
  -- An error_id, or none or other.
  label text COLLATE "C" NOT NULL,
  -- One of the project's 20 places for error_ids. Unique, so that workers that settle at the same moment take different ones.
  place smallint CHECK (place BETWEEN 1 AND 20),
  count bigint NOT NULL,
  first_seen_at bigint NOT NULL,
  last_seen_at bigint NOT NULL,
  PRIMARY KEY (project_key, label),
  CONSTRAINT error_total_place UNIQUE (project_key, place),
  CHECK ((place IS NULL) = (label IN ('none', 'other')))
) WITH (fillfactor = 70);

-- What the failure has in common with others (docs/specification.md#causes); NULL while it is pending.
ALTER TABLE evalwatch.failure ADD COLUMN cause text COLLATE "C";

CREATE INDEX failure_cause ON evalwatch.failure (cause, project_key, transition_id) WHERE settled_at IS NOT NULL;
