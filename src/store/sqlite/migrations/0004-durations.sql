-- The first successful poll after which no poll has been missing; NULL before the next one.
ALTER TABLE project ADD COLUMN steady_since INTEGER;

-- How long prompts were in a status that they left, for limits that are learned (docs/specification.md#durations).
CREATE TABLE prompt_duration (
  listing_key INTEGER NOT NULL REFERENCES listing ON DELETE CASCADE,
  status TEXT NOT NULL,
  -- Days since 1970-01-01 UTC.
  day INTEGER NOT NULL,
  -- Durations up to 1.15^bucket seconds, and longer than those of the bucket before.
  bucket INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (listing_key, status, day, bucket)
) STRICT, WITHOUT ROWID;

-- Counts the durations of stored transitions, also across gaps: the store does not have the times of past polls.
INSERT INTO prompt_duration (listing_key, status, day, bucket, count)
SELECT listing_key, from_status, at / 86400000,
  CASE WHEN held <= 1000 THEN 0 ELSE min(98, CAST(ceil(ln(held / 1000.0) / ln(1.15)) AS INTEGER)) END,
  count(*)
FROM (
  SELECT t.listing_key, t.from_status, t.at,
    t.at - lag(t.at) OVER stays AS held, lag(t.to_status) OVER stays AS began_as
  FROM transition t JOIN listing l ON l.listing_key = t.listing_key AND l.kind = 'prompt'
  WINDOW stays AS (PARTITION BY t.listing_key, t.record_id ORDER BY t.transition_id)
)
WHERE from_status IN ('PENDING', 'RUNNING') AND began_as = from_status AND held > 0
GROUP BY 1, 2, 3, 4;
