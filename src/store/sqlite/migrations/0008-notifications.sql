-- What messages have told to whom (docs/specification.md#stored-messages).

-- A receiver, once for each kind of message that it gets.
CREATE TABLE receiver (
  receiver TEXT NOT NULL,
  kind TEXT NOT NULL,
  -- The last transition before it was first configured: what is older is not told.
  since INTEGER NOT NULL,
  -- Another one after every message of this kind.
  token TEXT NOT NULL,
  -- Its teams and projects in JSON: a project that another filter adds is not told of the time before.
  filter TEXT NOT NULL,
  -- When it was last known to be configured.
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (receiver, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE told (
  project_key INTEGER NOT NULL,
  receiver TEXT NOT NULL,
  kind TEXT NOT NULL,
  -- Of a stuck prompt; empty for other kinds.
  record_id TEXT NOT NULL,
  -- The status in which it is stuck.
  status TEXT,
  -- Of moves the last transition that was told; of what is stuck or down when that began.
  mark INTEGER NOT NULL,
  PRIMARY KEY (project_key, receiver, kind, record_id)
) STRICT, WITHOUT ROWID;

-- Messages that no receiver has answered yet.
CREATE TABLE message (
  message_id TEXT PRIMARY KEY,
  receiver TEXT NOT NULL,
  -- Whose owner sends it.
  project_key INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  content TEXT NOT NULL
) STRICT;
