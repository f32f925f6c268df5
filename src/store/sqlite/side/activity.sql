-- The outcomes of requests: see src/domain/activity/activity.ts. This file is in no backup, is replaced by an empty
-- one if it cannot be read, and may be deleted while the server is stopped.

-- Requests by outcome. Buckets overlap: each request is in one of each width.
CREATE TABLE counts (
  desk_id      INTEGER NOT NULL,
  reason_id    TEXT    NOT NULL, -- '': all requests; otherwise those that were rejected for this reason
  width_ms     INTEGER NOT NULL,
  start        INTEGER NOT NULL, -- ms, a multiple of the width
  key_id       TEXT    NOT NULL,
  stored       INTEGER NOT NULL,
  duplicate    INTEGER NOT NULL,
  rejected     INTEGER NOT NULL,
  unauthorized INTEGER NOT NULL, -- of the rejected ones: with a key that is revoked, expired or of an archived desk
  last_at      INTEGER NOT NULL, -- ms, the newest request
  PRIMARY KEY (desk_id, reason_id, width_ms, start, key_id)
) STRICT, WITHOUT ROWID;

-- Keys that have ended and are still used, which are few, of all desks.
CREATE INDEX counts_unauthorized ON counts (width_ms, start) WHERE unauthorized > 0;

-- The first and the latest rejected requests of each key and reason. Each key and desk keeps its most recent reasons.
CREATE TABLE rejects (
  desk_id     INTEGER NOT NULL,
  reason_id   TEXT    NOT NULL, -- a hash of status, error and fields
  key_id      TEXT    NOT NULL,
  request_id  TEXT    NOT NULL, -- UUIDv7, rises with time
  at          INTEGER NOT NULL, -- ms
  status      INTEGER NOT NULL,
  error       TEXT    NOT NULL,
  fields      TEXT,             -- JSON: invalid field -> reason
  more_fields INTEGER NOT NULL, -- invalid fields beyond those
  message     TEXT,
  PRIMARY KEY (desk_id, reason_id, key_id, request_id)
) STRICT, WITHOUT ROWID;

-- Duplicates per signal and key. Each desk keeps the latest of those that differed from their signal, and of the others.
CREATE TABLE repeats (
  desk_id     INTEGER NOT NULL,
  signal_id   TEXT    NOT NULL,
  key_id      TEXT    NOT NULL,
  duplicates  INTEGER NOT NULL,
  differing   INTEGER NOT NULL, -- of them: with another content
  differs     INTEGER NOT NULL, -- in which fields: bits, in the order of fieldNames of src/domain/signal/signal.ts
  last_at     INTEGER NOT NULL, -- ms, the newest duplicate
  differed_at INTEGER NOT NULL, -- ms, the newest that differed; 0: none did
  PRIMARY KEY (desk_id, signal_id, key_id)
) STRICT, WITHOUT ROWID;

-- What requests sent that stored nothing: the latest rejected ones of each desk, and the latest duplicates of each
-- signal that differ from it. Without what looks like a key.
CREATE TABLE sent (
  desk_id          INTEGER NOT NULL,
  signal_id        TEXT    NOT NULL, -- the signal that the duplicate repeats; '': it was rejected
  request_id       TEXT    NOT NULL, -- UUIDv7, rises with time
  key_id           TEXT    NOT NULL,
  at               INTEGER NOT NULL, -- ms
  status           INTEGER,          -- the answer's; NULL: a duplicate
  error            TEXT,
  fields           TEXT,             -- JSON: invalid field -> reason
  more_fields      INTEGER,          -- invalid fields beyond those
  message          TEXT,
  client_signal_id TEXT,             -- NULL: it cannot be read, or a duplicate
  body             TEXT    NOT NULL, -- its start; of a duplicate the values that differ, as a JSON object
  body_bytes       INTEGER,          -- of the whole body; NULL: a duplicate
  PRIMARY KEY (desk_id, signal_id, request_id)
) STRICT, WITHOUT ROWID;
