-- The cause by version 2 of the grouping (docs/specification.md#causes); NULL while the failure is pending. The column
-- `cause` keeps the id of version 1, by which failures that were settled before are still found.
ALTER TABLE failure ADD COLUMN cause_id TEXT;

-- Finds the failures of a cause.
CREATE INDEX failure_cause_id ON failure (cause_id, listing_key, transition_id) WHERE cause_id IS NOT NULL;
-- Counts the causes of a time without reading rows, which are as large as their messages.
DROP INDEX failure_listing;
CREATE INDEX failure_listing ON failure (listing_key, transition_id, cause_id) WHERE cause_id IS NOT NULL;
