-- What the failure has in common with others (docs/specification.md#causes); NULL while it is pending.
ALTER TABLE failure ADD COLUMN cause TEXT;

-- Counts the failures of a cause without reading their messages, which fill pages.
CREATE INDEX failure_cause ON failure (cause, listing_key, transition_id) WHERE settled_at IS NOT NULL;

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
