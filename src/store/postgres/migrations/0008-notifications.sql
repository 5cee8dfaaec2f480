-- What messages have told to whom (docs/specification.md#stored-messages).

-- A receiver, once for each kind of message that it gets.
CREATE TABLE evalwatch.receiver (
  receiver text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  -- The last transition before it was first configured: what is older is not told.
  since bigint NOT NULL,
  -- Another one after every message of this kind.
  token uuid NOT NULL DEFAULT gen_random_uuid(),
  -- Its teams and projects in JSON: a project that another filter adds is not told of the time before.
  filter text NOT NULL,
  -- When it was last known to be configured.
  seen_at bigint NOT NULL,
  PRIMARY KEY (receiver, kind)
) WITH (fillfactor = 50);

CREATE TABLE evalwatch.told (
  project_key bigint NOT NULL,
  receiver text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  -- Of a stuck prompt; empty for other kinds.
  record_id text COLLATE "C" NOT NULL,
  -- The status in which it is stuck.
  status text,
  -- Of moves the last transition that was told; of what is stuck or down when that began.
  mark bigint NOT NULL,
  PRIMARY KEY (project_key, receiver, kind, record_id)
) WITH (fillfactor = 70);

-- Messages that no receiver has answered yet.
CREATE TABLE evalwatch.message (
  message_id text COLLATE "C" PRIMARY KEY,
  receiver text COLLATE "C" NOT NULL,
  -- Whose owner sends it.
  project_key bigint NOT NULL,
  created_at bigint NOT NULL,
  content text NOT NULL
);
