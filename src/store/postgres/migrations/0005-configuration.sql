-- What was configured last. A failover can lose it, and workers that remember it then configure it again
-- (docs/design-decisions.md#reload).
CREATE TABLE evalwatch.configuration (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- Digest of the ids of the configured projects; empty until they are configured under this schema version.
  projects_digest text NOT NULL
);

INSERT INTO evalwatch.configuration (projects_digest) VALUES ('');
