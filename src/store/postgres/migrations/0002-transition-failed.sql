-- Counts the failures of a project since a time without reading its transitions.
-- On a large store it may have been made beforehand, without holding up commits (docs/scaling.md).
CREATE INDEX IF NOT EXISTS transition_failed ON evalwatch.transition (project_key, at)
WHERE kind = 'prompt' AND to_status = 'FAILED';
