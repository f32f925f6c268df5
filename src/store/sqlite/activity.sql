-- The outcomes of requests: see src/domain/activity.ts. This file is in no backup, is replaced by an empty
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
  unauthorized INTEGER NOT NULL, -- of the rejected ones: with a key that is revoked or expired
  last_at      INTEGER NOT NULL, -- ms, the newest request
  PRIMARY KEY (desk_id, width_ms, start, key_id)
) STRICT, WITHOUT ROWID;

-- The newest rejected requests of each desk.
CREATE TABLE rejects (
  desk_id    INTEGER NOT NULL,
  request_id TEXT    NOT NULL, -- UUIDv7, rises with time
  key_id     TEXT    NOT NULL,
  reject     TEXT    NOT NULL, -- JSON
  PRIMARY KEY (desk_id, request_id)
) STRICT, WITHOUT ROWID;

-- The newest signals of each desk that were sent more than once.
CREATE TABLE repeats (
  desk_id    INTEGER NOT NULL,
  signal_id  TEXT    NOT NULL,
  duplicates INTEGER NOT NULL,
  differing  INTEGER NOT NULL, -- of them: with another content
  differs    TEXT    NOT NULL, -- JSON: in which fields
  last_at    INTEGER NOT NULL, -- ms, the newest duplicate
  PRIMARY KEY (desk_id, signal_id)
) STRICT, WITHOUT ROWID;
