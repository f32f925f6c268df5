-- Signalbox's database, version 1. Times are epoch milliseconds, UTC. Ids in TEXT are ULIDs:
-- 26 characters, sortable by time. Query it as you like with a read-only connection; write to it
-- only with `signalbox`.

-- The owners of keys and signals.
CREATE TABLE desks (
  id                   INTEGER PRIMARY KEY, -- small, because every signal and index entry holds it
  name                 TEXT    NOT NULL UNIQUE,
  created_at           INTEGER NOT NULL,    -- ms
  differing_duplicates INTEGER NOT NULL DEFAULT 0, -- duplicates whose content was not the original's
  passkeys_required    INTEGER NOT NULL DEFAULT 0, -- 1: its members sign in with passkeys only
  keys_max             INTEGER NOT NULL DEFAULT 100 -- active keys at most, without those in the overlap of a rotation
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

-- The console's lists: one desk, newest first.
CREATE INDEX api_keys_desk ON api_keys (desk_id, id);

-- The active keys of a desk. They are few, and those that have ended may be many.
CREATE INDEX api_keys_active ON api_keys (desk_id, ifnull(expires_at, 9223372036854775807))
  WHERE revoked_at IS NULL;

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

-- Exactly once: the only arbiter of "stored before". Rows without a client_signal_id never conflict.
CREATE UNIQUE INDEX signals_client_signal_id ON signals (desk_id, client_signal_id);

-- The console's lists: one desk, newest first. (Every index entry ends with the row's seq.)
CREATE INDEX signals_desk ON signals (desk_id);

-- The people who may use the console for a desk. Rows are never deleted: the audit refers to them.
CREATE TABLE members (
  id            TEXT    NOT NULL PRIMARY KEY, -- ULID
  desk_id       INTEGER NOT NULL REFERENCES desks (id),
  email         TEXT    NOT NULL,   -- who it is, and the name to sign in with; lower case
  password_hash TEXT,               -- argon2id, PHC string, after a `!` while locked; none for those with passkeys only
  created_at    INTEGER NOT NULL,   -- ms; of the invitation
  joined_at     INTEGER,            -- ms; of the first password or passkey
  signed_out_at INTEGER NOT NULL DEFAULT 0, -- ms; no session that began before it holds
  removed_at    INTEGER             -- ms; may not sign in from then on
) STRICT;

-- A person belongs to one desk.
CREATE UNIQUE INDEX members_email ON members (email) WHERE removed_at IS NULL;

-- One-time links, for a first password or another one.
CREATE TABLE invitations (
  id         TEXT    NOT NULL PRIMARY KEY, -- ULID
  token_hash BLOB    NOT NULL UNIQUE CHECK (length(token_hash) = 32), -- SHA-256 of what is in the link
  member_id  TEXT    NOT NULL REFERENCES members (id),
  created_at INTEGER NOT NULL, -- ms
  expires_at INTEGER NOT NULL, -- ms
  spent_at   INTEGER           -- ms; used, or made void by a later one
) STRICT;

-- WebAuthn credentials.
CREATE TABLE passkeys (
  id           TEXT    NOT NULL PRIMARY KEY, -- the credential's id, base64url
  member_id    TEXT    NOT NULL REFERENCES members (id),
  name         TEXT    NOT NULL,    -- a note for its member
  public_key   BLOB    NOT NULL,    -- COSE
  counter      INTEGER NOT NULL,    -- signatures so far, as far as the device counts them
  transports   TEXT    NOT NULL,    -- JSON: how a browser may reach it
  created_at   INTEGER NOT NULL,    -- ms
  last_used_at INTEGER,             -- ms
  removed_at   INTEGER              -- ms
) STRICT;

CREATE INDEX passkeys_member ON passkeys (member_id);

-- Who did what to desks, keys and members. Rows are never changed nor deleted.
CREATE TABLE audit (
  id         INTEGER PRIMARY KEY, -- in the order of what was done
  at         INTEGER NOT NULL,    -- ms
  desk_id    INTEGER NOT NULL REFERENCES desks (id),
  member_id  TEXT    REFERENCES members (id), -- who did it; none: an admin, on the command line
  action     TEXT    NOT NULL,    -- such as "key.revoked"
  key_id     TEXT    REFERENCES api_keys (id), -- what it was done to
  subject_id TEXT    REFERENCES members (id), -- to whom it was done
  detail     TEXT,                -- what a reader should know beside it, in words
  client     TEXT                 -- the IP address that asked for it; none: the command line
) STRICT;

CREATE INDEX audit_desk ON audit (desk_id);
CREATE INDEX audit_key ON audit (key_id) WHERE key_id IS NOT NULL;
