-- What the service says that prompts belong to. Rows of earlier versions get it with the first listing that is read whole.

-- Texts of a project's experiments, datasets and metrics.
CREATE TABLE label (
  label_id INTEGER PRIMARY KEY,
  project_key INTEGER NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (project_key, text)
) STRICT;

-- Labels; NULL without one.
ALTER TABLE record ADD COLUMN experiment INTEGER;
ALTER TABLE record ADD COLUMN dataset INTEGER;
ALTER TABLE record ADD COLUMN metric INTEGER;
