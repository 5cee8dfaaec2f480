-- What the failure has in common with others (docs/specification.md#causes); NULL while it is pending.
ALTER TABLE failure ADD COLUMN cause TEXT;

-- Finds the failures of a cause.
CREATE INDEX failure_cause ON failure (cause, listing_key, transition_id) WHERE cause IS NOT NULL;
-- Counts the causes of a time without reading rows, which are as large as their messages.
CREATE INDEX failure_listing ON failure (listing_key, transition_id, cause) WHERE cause IS NOT NULL;

-- Settled failures by error_id (docs/specification.md#error-ids); keeps the counts of failures that were deleted.
CREATE TABLE error_total (
  listing_key INTEGER NOT NULL REFERENCES listing ON DELETE CASCADE,
  -- An error_id, or none or other.
  label TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_seen_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  PRIMARY KEY (listing_key, label)
) STRICT, WITHOUT ROWID;
