-- Signalbox's database, version 1. Times are epoch milliseconds, UTC. Ids in TEXT are ULIDs:
-- 26 characters, sortable by time. Query it as you like with a read-only connection; write to it
-- only with `signalbox`.

-- The owners of keys and signals.
CREATE TABLE desks (
  id                   INTEGER PRIMARY KEY, -- small, because every signal and index entry holds it
  name                 TEXT    NOT NULL UNIQUE,
  created_at           INTEGER NOT NULL,    -- ms
  differing_duplicates INTEGER NOT NULL DEFAULT 0 -- duplicates whose content was not the original's
) STRICT;

-- The keys that authenticate desks. Rows are never deleted: signals refer to them.
CREATE TABLE api_keys (
  id           TEXT    NOT NULL PRIMARY KEY, -- ULID; what people name a key by
  desk_id      INTEGER NOT NULL REFERENCES desks (id),
  label        TEXT,                         -- a note for people
  key_hash     BLOB    NOT NULL UNIQUE CHECK (length(key_hash) = 32), -- SHA-256 of the whole key
  last4        TEXT    NOT NULL CHECK (length(last4) = 4), -- the key's last four characters
  created_at   INTEGER NOT NULL, -- ms
  expires_at   INTEGER,          -- ms; does not authenticate from then on
  last_used_at INTEGER,          -- ms; written at most once a minute
  revoked_at   INTEGER           -- ms; does not authenticate from then on
) STRICT;

CREATE INDEX api_keys_desk ON api_keys (desk_id);

-- The signals, one row for each that was accepted. Rows are never changed nor deleted: backups rely
-- on it for every table whose key is "seq".
CREATE TABLE signals (
  seq              INTEGER PRIMARY KEY,   -- order of commit
  id               TEXT    NOT NULL UNIQUE, -- ULID; strictly rises with seq
  desk_id          INTEGER NOT NULL REFERENCES desks (id),
  key_id           TEXT    NOT NULL REFERENCES api_keys (id), -- the key that it was sent with
  received_at      INTEGER NOT NULL,      -- ms, by the server's clock
  client_signal_id TEXT,                  -- idempotency key, 1 to 255 characters
  source           TEXT    NOT NULL CHECK (source IN ('venue_1', 'venue_2', 'venue_3')),
  type             TEXT    NOT NULL CHECK (type IN ('prediction_market', 'crypto', 'stock')),
  symbol           TEXT    NOT NULL,      -- 1 to 512 characters
  side             TEXT    NOT NULL CHECK (side IN ('open', 'close')),
  direction        TEXT    CHECK (direction IN ('long', 'short', 'buy', 'sell')),
  price            REAL,                  -- in the symbol's own currency
  quantity         REAL,                  -- in the symbol's own unit
  signal_time      INTEGER,               -- ms, by the client's clock
  metadata         TEXT                   -- a JSON object, byte for byte as sent
) STRICT;

-- The arbiter of deduplication: per desk, for ever (SPEC.md 4.1, rules 1 to 4).
CREATE UNIQUE INDEX signals_client_signal_id ON signals (desk_id, client_signal_id)
  WHERE client_signal_id IS NOT NULL;
