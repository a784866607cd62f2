-- Format 3. What the gateway keeps of effects: actions, whom to wake, kill switches, and the audit.

CREATE TABLE gateway_action (
  row INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  tenant TEXT NOT NULL,
  thread TEXT NOT NULL,
  run TEXT NOT NULL,             -- as in gateway_call
  subject INTEGER NOT NULL,      -- a hash of tenant, thread and subject: texts of any length, and not readable here
  state TEXT NOT NULL,
  version INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL           -- covers the columns above, too
);
CREATE UNIQUE INDEX gateway_action_id ON gateway_action (id);
CREATE INDEX gateway_action_run ON gateway_action (run, id);
CREATE INDEX gateway_action_subject ON gateway_action (subject, id);
CREATE INDEX gateway_action_state ON gateway_action (state, id);

CREATE TABLE gateway_wake (
  run TEXT NOT NULL,             -- as in gateway_call
  key TEXT NOT NULL,
  action TEXT NOT NULL,
  version INTEGER NOT NULL,
  due_ms INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE INDEX gateway_wake_due ON gateway_wake (due_ms);

CREATE TABLE gateway_kill (
  scope TEXT PRIMARY KEY,
  value TEXT,                    -- who, why and when
  value_packed BLOB,
  sum INTEGER NOT NULL
) WITHOUT ROWID;

-- One chain for each tenant. Each row's hash covers the row before it, so it needs no sum.
CREATE TABLE gateway_audit (
  row INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  seq INTEGER NOT NULL,
  prev TEXT NOT NULL,
  hash TEXT NOT NULL,
  event TEXT NOT NULL
);
CREATE UNIQUE INDEX gateway_audit_seq ON gateway_audit (tenant, seq);

-- What is personal about an entry: it can be erased, and the chain stays whole.
CREATE TABLE gateway_audit_detail (
  row INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  seq INTEGER NOT NULL,
  value TEXT,
  value_packed BLOB,
  sum INTEGER NOT NULL,
  FOREIGN KEY (tenant, seq) REFERENCES gateway_audit (tenant, seq)
);
CREATE UNIQUE INDEX gateway_audit_detail_seq ON gateway_audit_detail (tenant, seq);

CREATE TRIGGER gateway_audit_update BEFORE UPDATE ON gateway_audit
BEGIN SELECT RAISE(ABORT, 'the table gateway_audit is append-only'); END;
CREATE TRIGGER gateway_audit_delete BEFORE DELETE ON gateway_audit
BEGIN SELECT RAISE(ABORT, 'the table gateway_audit is append-only'); END;
-- An `INSERT OR REPLACE` would remove the row it replaces without a word to the trigger above.
CREATE TRIGGER gateway_audit_insert BEFORE INSERT ON gateway_audit
WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM gateway_audit WHERE tenant = NEW.tenant)
  OR EXISTS (SELECT 1 FROM gateway_audit WHERE row = NEW.row)
BEGIN SELECT RAISE(ABORT, 'the table gateway_audit takes nothing but the next entry'); END;

CREATE TRIGGER gateway_audit_detail_update BEFORE UPDATE ON gateway_audit_detail
BEGIN SELECT RAISE(ABORT, 'a detail of the audit can be erased and not changed'); END;
CREATE TRIGGER gateway_audit_detail_insert BEFORE INSERT ON gateway_audit_detail
WHEN EXISTS (SELECT 1 FROM gateway_audit_detail
  WHERE row = NEW.row OR (tenant = NEW.tenant AND seq = NEW.seq))
BEGIN SELECT RAISE(ABORT, 'a detail of the audit can be erased and not changed'); END;
