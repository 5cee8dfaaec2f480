-- The cause by version 2 of the grouping (docs/specification.md#causes); NULL while the failure is pending, and if an older
-- worker settled it. The column `cause` keeps the id of version 1, which such workers write and by which failures that were
-- settled before are still found.
ALTER TABLE evalwatch.failure ADD COLUMN cause_id text COLLATE "C";

CREATE INDEX failure_cause_id ON evalwatch.failure (cause_id, project_key, transition_id) WHERE settled_at IS NOT NULL;
