-- The order in which failures were settled, for clients that follow the events: `settled_at` is clock time and can go back.
CREATE TABLE settlement (
  -- Never used twice, not even after retention.
  settlement_id INTEGER PRIMARY KEY AUTOINCREMENT,
  transition_id INTEGER NOT NULL UNIQUE REFERENCES failure ON DELETE CASCADE
) STRICT;

INSERT INTO settlement (transition_id)
SELECT transition_id FROM failure WHERE settled_at IS NOT NULL ORDER BY settled_at, transition_id;
