-- The outcomes of requests: see src/domain/activity/activity.ts. This file is in no backup, is replaced by an empty
-- one if it cannot be read, and may be deleted while the server is stopped.

-- Requests by outcome. Buckets overlap: each request is in one of each width.
CREATE TABLE buckets (
  desk_id      INTEGER NOT NULL,
  width_ms     INTEGER NOT NULL,
  start        INTEGER NOT NULL, -- ms, a multiple of the width
  key_id       TEXT    NOT NULL,
  stored       INTEGER NOT NULL,
  duplicate    INTEGER NOT NULL,
  rejected     INTEGER NOT NULL,
  unauthorized INTEGER NOT NULL, -- of the rejected ones: with a key that is revoked, expired or of an archived desk
  last_at      INTEGER NOT NULL, -- ms, the newest request
  PRIMARY KEY (desk_id, width_ms, start, key_id)
) STRICT, WITHOUT ROWID;

-- Rejected requests with the same key, status, error and fields. Each key and desk keeps its most recent reasons.
CREATE TABLE reject_reasons (
  desk_id     INTEGER NOT NULL,
  reason_id   TEXT    NOT NULL, -- a hash of status, error and fields
  key_id      TEXT    NOT NULL,
  status      INTEGER NOT NULL,
  error       TEXT    NOT NULL,
  fields      TEXT,             -- JSON: invalid field -> reason
  more_fields INTEGER NOT NULL, -- invalid fields beyond those
  count       INTEGER NOT NULL,
  first_at    INTEGER NOT NULL, -- ms
  last_at     INTEGER NOT NULL, -- ms
  latest_id   TEXT    NOT NULL, -- of the latest request
  PRIMARY KEY (desk_id, reason_id, key_id)
) STRICT, WITHOUT ROWID;

-- The latest requests of each reason.
CREATE TABLE rejects (
  desk_id    INTEGER NOT NULL,
  reason_id  TEXT    NOT NULL,
  key_id     TEXT    NOT NULL,
  request_id TEXT    NOT NULL, -- UUIDv7, rises with time
  at         INTEGER NOT NULL, -- ms
  message    TEXT,
  PRIMARY KEY (desk_id, reason_id, key_id, request_id),
  FOREIGN KEY (desk_id, reason_id, key_id) REFERENCES reject_reasons ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Rejected requests of the last minutes and hours. Each request is in one row of each width.
CREATE TABLE reject_counts (
  desk_id   INTEGER NOT NULL,
  reason_id TEXT    NOT NULL,
  key_id    TEXT    NOT NULL,
  width_ms  INTEGER NOT NULL,
  start     INTEGER NOT NULL, -- ms, a multiple of the width
  count     INTEGER NOT NULL,
  PRIMARY KEY (desk_id, reason_id, key_id, width_ms, start),
  FOREIGN KEY (desk_id, reason_id, key_id) REFERENCES reject_reasons ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- The newest signals of each desk that were sent more than once.
CREATE TABLE repeats (
  desk_id    INTEGER NOT NULL,
  signal_id  TEXT    NOT NULL,
  duplicates INTEGER NOT NULL,
  differing  INTEGER NOT NULL, -- of them: with another content
  differs    INTEGER NOT NULL, -- in which fields: bits, in the order of fieldNames of src/domain/signal/signal.ts
  last_at    INTEGER NOT NULL, -- ms, the newest duplicate
  PRIMARY KEY (desk_id, signal_id)
) STRICT, WITHOUT ROWID;

-- Duplicates that differed from their signal, per signal and key. Each desk keeps the latest.
CREATE TABLE differing (
  desk_id   INTEGER NOT NULL,
  signal_id TEXT    NOT NULL,
  key_id    TEXT    NOT NULL,
  count     INTEGER NOT NULL,
  fields    INTEGER NOT NULL, -- in which fields: bits, as in repeats
  last_at   INTEGER NOT NULL, -- ms, the newest of them
  PRIMARY KEY (desk_id, signal_id, key_id)
) STRICT, WITHOUT ROWID;
