-- Counts the failures of a project since a time without reading its transitions.
CREATE INDEX transition_failed ON transition (listing_key, at) WHERE to_status = 'FAILED';
