-- Format 3. The corpus: issues, the vectors of their chunks, how far repositories were read, and floors. It is ranked
-- by the program, so nothing here needs an extension.

CREATE TABLE corpus (
  one BIGINT PRIMARY KEY CHECK (one = 1),
  revision BIGINT NOT NULL,  -- grows with every change, also when everything is cleared
  identity TEXT COLLATE "C"  -- what the vectors were made with; NULL while it is empty
);

CREATE TABLE corpus_document (
  repo TEXT COLLATE "C" NOT NULL,  -- in lower case
  number BIGINT NOT NULL,
  hash BYTEA NOT NULL,  -- of the document's content
  value TEXT COLLATE "C",
  value_packed BYTEA,
  sum BIGINT NOT NULL,  -- covers the columns above, too
  PRIMARY KEY (repo, number)
);

CREATE TABLE corpus_vectors (
  repo TEXT COLLATE "C" NOT NULL,
  number BIGINT NOT NULL,
  dims BIGINT NOT NULL,
  value TEXT COLLATE "C",
  value_packed BYTEA,
  sum BIGINT NOT NULL,
  PRIMARY KEY (repo, number)
);

CREATE TABLE corpus_cursor (
  repo TEXT COLLATE "C" PRIMARY KEY,
  value TEXT COLLATE "C",
  value_packed BYTEA,
  sum BIGINT NOT NULL
);

CREATE TABLE corpus_floors (
  one BIGINT PRIMARY KEY CHECK (one = 1),
  value TEXT COLLATE "C",
  value_packed BYTEA,
  sum BIGINT NOT NULL
);

-- What is packed is small already.
ALTER TABLE corpus_document ALTER COLUMN value_packed SET STORAGE EXTERNAL;
ALTER TABLE corpus_vectors ALTER COLUMN value_packed SET STORAGE EXTERNAL;
