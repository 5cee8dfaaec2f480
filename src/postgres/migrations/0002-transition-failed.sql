-- Counts the failures of a project since a time without reading its transitions.
CREATE INDEX transition_failed ON evalwatch.transition (project_key, at)
WHERE kind = 'prompt' AND to_status = 'FAILED';
