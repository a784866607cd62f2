-- Format 1. Times are milliseconds since the Unix epoch; ids of runs, checkpoints and tasks are UUIDs as text.
--
-- A document is JSON in a TEXT column `x`; a long or an encrypted one is NULL there, and in `x_packed` its
-- first byte says how it is packed. `sum` covers the documents of its row, and which row it is.

CREATE TABLE store (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  epoch INTEGER NOT NULL,        -- the newest lease of all: epochs grow over deletions too
  key_check BLOB                 -- known words under the encryption key; NULL without one
);

CREATE TABLE thread (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  uuid TEXT NOT NULL,
  graph TEXT,
  status TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  epoch INTEGER NOT NULL,        -- of the newest lease; writes with an older one are refused
  holder TEXT,                   -- the run that has the lease
  owner TEXT,                    -- the process that keeps it
  expires_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,          -- of the newest entry of the log
  counter INTEGER NOT NULL,      -- of its pieces and notes, in all scopes: the newest number given
  next TEXT NOT NULL,            -- the nodes that are due
  interrupts TEXT,
  interrupts_packed BLOB,
  sum INTEGER NOT NULL           -- of what is due and asked
);

-- What is long and seldom written, apart from the row that every superstep writes.
CREATE TABLE thread_doc (
  thread INTEGER PRIMARY KEY REFERENCES thread (id) ON DELETE CASCADE,
  metadata TEXT,
  metadata_packed BLOB,
  state TEXT,
  state_packed BLOB,
  sum INTEGER NOT NULL
);

CREATE TABLE run (
  id TEXT PRIMARY KEY,
  thread TEXT NOT NULL,          -- by name: a run may be handed in before its thread is there
  graph TEXT NOT NULL,
  status TEXT NOT NULL,
  strategy TEXT,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  cancel_reason TEXT,
  cancel_wished_ms INTEGER,
  cancel_done_ms INTEGER,
  error TEXT,
  error_packed BLOB,
  arguments TEXT,
  arguments_packed BLOB,
  sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX run_thread ON run (thread);
CREATE INDEX run_status ON run (status);

CREATE TABLE scope (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  thread INTEGER NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
  namespace TEXT NOT NULL,
  head TEXT,
  UNIQUE (thread, namespace)
);

CREATE TABLE checkpoint (
  scope INTEGER NOT NULL REFERENCES scope (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  parent TEXT,
  source TEXT NOT NULL,
  superstep INTEGER NOT NULL,
  run TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  metadata TEXT,                 -- the caller's
  metadata_packed BLOB,
  machine TEXT,
  machine_packed BLOB,
  channels TEXT NOT NULL,        -- which pieces: see channels.rs
  base TEXT,                     -- an ancestor, which has the pieces that `channels` does not name
  sum INTEGER NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;

CREATE TABLE piece (
  scope INTEGER NOT NULL REFERENCES scope (id) ON DELETE CASCADE,
  n INTEGER NOT NULL,
  channel TEXT NOT NULL,
  kind TEXT NOT NULL,            -- whole, append, edit
  before INTEGER,                -- the piece that this one goes on from; always a smaller number
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL,
  PRIMARY KEY (scope, n)
) WITHOUT ROWID;

CREATE TABLE note (
  scope INTEGER NOT NULL REFERENCES scope (id) ON DELETE CASCADE,
  checkpoint TEXT NOT NULL,
  task TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  n INTEGER NOT NULL,            -- their order
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL,
  PRIMARY KEY (scope, checkpoint, task, kind, key)
) WITHOUT ROWID;

CREATE TABLE event (
  thread INTEGER NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  run TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  pieces TEXT,                   -- what of `update` is stored as pieces: {"channel": [scope, n]}
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL,
  PRIMARY KEY (thread, seq)
) WITHOUT ROWID;

CREATE TABLE memory (
  namespace TEXT NOT NULL,       -- each label with an end mark, so that a prefix is a range
  key TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  expires_ms INTEGER,
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL,
  PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

CREATE INDEX memory_expires ON memory (expires_ms) WHERE expires_ms IS NOT NULL;

CREATE TABLE gateway_call (
  run TEXT NOT NULL,             -- thread, run, tenant and agent as a JSON array, so that a thread is a range
  key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL,
  PRIMARY KEY (run, key)
) WITHOUT ROWID;

CREATE TABLE gateway_counter (
  run TEXT NOT NULL,
  name TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (run, name)
) WITHOUT ROWID;
