-- Format 2. What every superstep adds is appended at the end of its table, and found by an index. In format 1
-- each thread had a place of its own in the table: a commit for a hundred threads touched a hundred pages, and
-- of a value longer than a quarter of a page most went to a page of its own.

CREATE TABLE checkpoint_2 (
  row INTEGER PRIMARY KEY,
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
  sum INTEGER NOT NULL
);
INSERT INTO checkpoint_2 (scope, id, parent, source, superstep, run, created_ms, metadata, metadata_packed,
  machine, machine_packed, channels, base, sum)
  SELECT scope, id, parent, source, superstep, run, created_ms, metadata, metadata_packed,
  machine, machine_packed, channels, base, sum FROM checkpoint ORDER BY scope, id;
DROP TABLE checkpoint;
ALTER TABLE checkpoint_2 RENAME TO checkpoint;
CREATE UNIQUE INDEX checkpoint_id ON checkpoint (scope, id);

CREATE TABLE piece_2 (
  row INTEGER PRIMARY KEY,
  scope INTEGER NOT NULL REFERENCES scope (id) ON DELETE CASCADE,
  n INTEGER NOT NULL,
  channel TEXT NOT NULL,
  kind TEXT NOT NULL,            -- whole, append, edit
  before INTEGER,                -- the piece that this one goes on from; always a smaller number
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL
);
INSERT INTO piece_2 (scope, n, channel, kind, before, value, value_packed, sum)
  SELECT scope, n, channel, kind, before, value, value_packed, sum FROM piece ORDER BY scope, n;
DROP TABLE piece;
ALTER TABLE piece_2 RENAME TO piece;
CREATE UNIQUE INDEX piece_n ON piece (scope, n);

CREATE TABLE note_2 (
  row INTEGER PRIMARY KEY,
  scope INTEGER NOT NULL REFERENCES scope (id) ON DELETE CASCADE,
  checkpoint TEXT NOT NULL,
  task TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  n INTEGER NOT NULL,            -- their order
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL
);
INSERT INTO note_2 (scope, checkpoint, task, kind, key, n, value, value_packed, sum)
  SELECT scope, checkpoint, task, kind, key, n, value, value_packed, sum FROM note ORDER BY scope, n;
DROP TABLE note;
ALTER TABLE note_2 RENAME TO note;
CREATE UNIQUE INDEX note_key ON note (scope, checkpoint, task, kind, key);

CREATE TABLE event_2 (
  row INTEGER PRIMARY KEY,
  thread INTEGER NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  run TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  pieces TEXT,                   -- what of `update` is stored as pieces: {"channel": [scope, n]}
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL
);
INSERT INTO event_2 (thread, seq, run, created_ms, pieces, value, value_packed, sum)
  SELECT thread, seq, run, created_ms, pieces, value, value_packed, sum FROM event ORDER BY thread, seq;
DROP TABLE event;
ALTER TABLE event_2 RENAME TO event;
CREATE UNIQUE INDEX event_seq ON event (thread, seq);
