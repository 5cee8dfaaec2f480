-- How long prompts were in a status that they left, for limits that are learned (docs/specification.md#durations).
CREATE TABLE evalwatch.prompt_duration (
  project_key bigint NOT NULL,
  status text COLLATE "C" NOT NULL,
  -- Days since 1970-01-01 UTC.
  day integer NOT NULL,
  -- Durations up to 1.15^bucket seconds, and longer than those of the bucket before.
  bucket integer NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (project_key, status, day, bucket)
) WITH (fillfactor = 70);

-- Rows are added day by day, so a few bytes of index cover many rows.
CREATE INDEX prompt_duration_day ON evalwatch.prompt_duration
USING brin (day) WITH (pages_per_range = 16, autosummarize = on);

-- Counts the durations of stored transitions, also across gaps: the store does not have the times of past polls.
INSERT INTO evalwatch.prompt_duration (project_key, status, day, bucket, count)
SELECT project_key, from_status, at / 86400000,
  CASE WHEN held <= 1000 THEN 0 ELSE least(98, ceil(ln(held / 1000.0::float8) / ln(1.15::float8))) END,
  count(*)
FROM (
  SELECT project_key, from_status, at,
    at - lag(at) OVER stays AS held, lag(to_status) OVER stays AS began_as
  FROM evalwatch.transition
  WHERE kind = 'prompt' AND project_key NOT IN (SELECT project_key FROM evalwatch.waste)
  WINDOW stays AS (PARTITION BY project_key, record_id ORDER BY transition_id)
) stay
WHERE from_status IN ('PENDING', 'RUNNING') AND began_as = from_status AND held > 0
GROUP BY 1, 2, 3, 4;

-- The first successful poll after which no poll has been missing; NULL before the next one. Comes last, because workers of
-- the version before cannot commit from here to the end of the migration.
ALTER TABLE evalwatch.project ADD COLUMN steady_since bigint;
