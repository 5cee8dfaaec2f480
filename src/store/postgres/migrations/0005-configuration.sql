-- The projects that were configured last, once they were under this schema version. A failover can lose a configuration, and
-- the workers then notice it by its digest (docs/design-decisions.md#reload).
CREATE TABLE evalwatch.configuration (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- Digest of the ids of the configured projects; empty if not all of them could be configured.
  projects_digest text NOT NULL
);
