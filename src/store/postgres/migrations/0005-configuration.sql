-- Number of the newest change of the configured projects, and a digest of them. A failover can lose a change; workers notice it
-- by the digest (docs/design-decisions.md#reload).
CREATE TABLE evalwatch.configuration (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- From the sequence evalwatch.epoch, drawn when the change was made.
  epoch bigint NOT NULL,
  -- Empty while a change is being made, and before the first one under this schema version.
  projects_digest text NOT NULL
) WITH (fillfactor = 50);

INSERT INTO evalwatch.configuration (epoch, projects_digest) VALUES (0, '');
