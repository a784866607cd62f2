-- Format 2. What the gateway keeps of effects: actions, whom to wake, kill switches, and the audit.

CREATE TABLE gateway_action (
  id TEXT COLLATE "C" PRIMARY KEY,
  tenant TEXT COLLATE "C" NOT NULL,
  thread TEXT COLLATE "C" NOT NULL,
  run TEXT COLLATE "C" NOT NULL,  -- as in gateway_call
  subject BIGINT NOT NULL,  -- a hash of tenant, thread and subject: texts of any length, and not readable here
  state TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  value TEXT COLLATE "C",
  value_packed BYTEA,
  sum BIGINT NOT NULL  -- covers the columns above, too
);
CREATE INDEX gateway_action_run ON gateway_action (run, id);
CREATE INDEX gateway_action_subject ON gateway_action (subject, id);
CREATE INDEX gateway_action_state ON gateway_action (state, id);

CREATE TABLE gateway_wake (
  run TEXT COLLATE "C" NOT NULL,  -- as in gateway_call
  key TEXT COLLATE "C" NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  due_ms BIGINT NOT NULL,
  sum BIGINT NOT NULL,
  PRIMARY KEY (run, key)
);
CREATE INDEX gateway_wake_due ON gateway_wake (due_ms);

CREATE TABLE gateway_kill (
  scope TEXT COLLATE "C" PRIMARY KEY,
  value TEXT COLLATE "C",  -- who, why and when
  value_packed BYTEA,
  sum BIGINT NOT NULL
);

-- One chain for each tenant. Each row's hash covers the row before it, so it needs no sum.
CREATE TABLE gateway_audit (
  tenant TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  prev TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  event TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, seq)
);

-- What is personal about an entry: it can be erased, and the chain stays whole.
CREATE TABLE gateway_audit_detail (
  tenant TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  value TEXT COLLATE "C",
  value_packed BYTEA,
  sum BIGINT NOT NULL,
  PRIMARY KEY (tenant, seq),
  FOREIGN KEY (tenant, seq) REFERENCES gateway_audit (tenant, seq)
);

CREATE FUNCTION gateway_audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the table % is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER gateway_audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON gateway_audit
  FOR EACH STATEMENT EXECUTE FUNCTION gateway_audit_stays();
CREATE TRIGGER gateway_audit_detail_stays BEFORE UPDATE OR TRUNCATE ON gateway_audit_detail
  FOR EACH STATEMENT EXECUTE FUNCTION gateway_audit_stays();
-- Also in a session that says it only replicates.
ALTER TABLE gateway_audit ENABLE ALWAYS TRIGGER gateway_audit_stays;
ALTER TABLE gateway_audit_detail ENABLE ALWAYS TRIGGER gateway_audit_detail_stays;

-- Rows that are written again and again stay on their page.
ALTER TABLE gateway_action SET (fillfactor = 80);

-- What is packed is small already.
ALTER TABLE gateway_action ALTER COLUMN value_packed SET STORAGE EXTERNAL;
ALTER TABLE gateway_audit_detail ALTER COLUMN value_packed SET STORAGE EXTERNAL;
