-- Format 4. The corpus: issues, the vectors of their chunks, how far repositories were read, and floors.

CREATE TABLE corpus (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  revision INTEGER NOT NULL,     -- grows with every change, also when everything is cleared
  identity TEXT                  -- what the vectors were made with; NULL while it is empty
);

CREATE TABLE corpus_document (
  row INTEGER PRIMARY KEY,
  repo TEXT NOT NULL,            -- in lower case
  number INTEGER NOT NULL,
  hash BLOB NOT NULL,            -- of the document's content
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL           -- covers the columns above, too
);
CREATE UNIQUE INDEX corpus_document_number ON corpus_document (repo, number);

CREATE TABLE corpus_vectors (
  row INTEGER PRIMARY KEY,
  repo TEXT NOT NULL,
  number INTEGER NOT NULL,
  dims INTEGER NOT NULL,
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL
);
CREATE UNIQUE INDEX corpus_vectors_number ON corpus_vectors (repo, number);

CREATE TABLE corpus_cursor (
  repo TEXT PRIMARY KEY,
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE corpus_floors (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL
);
