-- Signalbox's database, version 1. Times are epoch milliseconds, UTC. TEXT ids are ULIDs: 26 characters,
-- sortable by time. Query it freely over a read-only connection; only `signalbox` may write to it.

-- The owners of keys and signals.
CREATE TABLE desks (
  id                   INTEGER PRIMARY KEY, -- small, because every signal and index entry holds it
  uid                  TEXT    NOT NULL UNIQUE, -- ULID; the same in every copy, where names and row numbers may differ
  name                 TEXT    NOT NULL UNIQUE,
  created_at           INTEGER NOT NULL,    -- ms
  archived_at          INTEGER,             -- ms; its keys and members are refused since then
  differing_duplicates INTEGER NOT NULL DEFAULT 0, -- duplicates that differed from their original
  passkeys_required    INTEGER NOT NULL DEFAULT 0, -- 1: its members sign in with passkeys only
  keeps_sent           INTEGER NOT NULL DEFAULT 1, -- 0: what rejected requests and differing duplicates sent is not kept
  keys_max             INTEGER NOT NULL DEFAULT 100, -- limit on active keys; those in the overlap of a rotation do not count
  silence_ms           INTEGER,             -- ms; after so long without a signal its people get a notice; NULL: three times its usual interval
  silence_hours        TEXT                 -- JSON: the hours in which they do, see src/domain/desk/silence.ts; NULL: always
) STRICT;

-- The keys that authenticate desks and readers. Rows are never deleted: signals refer to them.
CREATE TABLE api_keys (
  id           TEXT    NOT NULL PRIMARY KEY, -- ULID; the key's public id
  scope        TEXT    NOT NULL CHECK (scope IN ('send', 'read')), -- what it allows: to store signals, or to read the feed
  desk_id      INTEGER REFERENCES desks (id) CHECK (desk_id IS NOT NULL OR scope = 'read'), -- NULL: a read key for all desks
  label        TEXT,                         -- a note for people
  key_hash     BLOB    NOT NULL UNIQUE CHECK (length(key_hash) = 32), -- SHA-256 of the whole key
  last4        TEXT    NOT NULL CHECK (length(last4) = 4), -- the key's last four characters
  created_at   INTEGER NOT NULL, -- ms
  expires_at   INTEGER,          -- ms; the key stops working then
  lifetime_ms  INTEGER,          -- from creation to expiry, as it was minted: a rotation shortens only expires_at
  last_used_at INTEGER,          -- ms; written at most once a minute
  revoked_at   INTEGER,          -- ms; the key stopped working then
  successor_id TEXT REFERENCES api_keys (id), -- the last key that rotations made to replace it; NULL: it was not rotated
  limits       TEXT -- JSON: the networks, sources, types and requests per second that it is limited to; NULL: nothing is
) STRICT;

-- The console's lists: one desk, newest first.
CREATE INDEX api_keys_desk ON api_keys (desk_id, id);

-- The active keys of a desk, which are few among many that have ended.
CREATE INDEX api_keys_active ON api_keys (desk_id, coalesce(expires_at, 9223372036854775807))
  WHERE revoked_at IS NULL;

-- The accepted signals. Rows are never changed or deleted, so seq has no gaps: lists and counts rely on
-- that.
CREATE TABLE signals (
  seq              INTEGER PRIMARY KEY,   -- order of commit
  id               TEXT    NOT NULL UNIQUE, -- ULID; strictly increases with seq
  desk_id          INTEGER NOT NULL REFERENCES desks (id),
  key_id           TEXT    NOT NULL REFERENCES api_keys (id), -- the key it was sent with
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
  metadata         TEXT,                  -- a JSON object, byte for byte as sent
  hash             BLOB    NOT NULL       -- 8 bytes, of all columns but seq: see src/domain/signal/hash.ts
) STRICT;

-- Exactly once: the only arbiter of "stored before". Rows without a client_signal_id never conflict.
CREATE UNIQUE INDEX signals_client_signal_id ON signals (desk_id, client_signal_id);

-- The console's lists: one desk, newest first. (Every index entry ends with the row's seq.)
CREATE INDEX signals_desk ON signals (desk_id);

-- What each block of 4,096 signals, in the order of storage, may contain: limits of time and searches skip the others.
-- The last, incomplete block has no row.
CREATE TABLE signal_blocks (
  block        INTEGER PRIMARY KEY, -- (seq - 1) / 4096; from 0, without gaps
  received_min INTEGER NOT NULL,    -- ms; the earliest received_at
  received_max INTEGER NOT NULL,    -- ms; the latest
  signals      INTEGER NOT NULL,    -- how many there are
  symbols      TEXT,                -- a JSON array: each symbol once, and maybe more; NULL: too many
  others       TEXT                 -- the same of key_id, source, type, side and direction
) STRICT;

-- The people who may use the console for a desk. Rows are never deleted: the audit refers to them.
CREATE TABLE members (
  id            TEXT    NOT NULL PRIMARY KEY, -- ULID
  desk_id       INTEGER NOT NULL REFERENCES desks (id),
  email         TEXT    NOT NULL,   -- the name to sign in with; lower case
  role          TEXT    NOT NULL CHECK (role IN ('manager', 'viewer')), -- a viewer sees everything of the desk, and changes only their own account
  password_hash TEXT,               -- argon2id, PHC string, with a `!` in front while locked; NULL with passkeys only
  created_at    INTEGER NOT NULL,   -- ms; when invited
  joined_at     INTEGER,            -- ms; when the first password or passkey was set
  signed_out_at INTEGER NOT NULL DEFAULT 0, -- ms; ends all sessions that began before
  removed_at    INTEGER             -- ms; may not sign in since then
) STRICT;

-- A person belongs to one desk.
CREATE UNIQUE INDEX members_email ON members (email) WHERE removed_at IS NULL;

-- One-time links to set a first or a new password or passkey.
CREATE TABLE invitations (
  id         TEXT    NOT NULL PRIMARY KEY, -- ULID
  token_hash BLOB    NOT NULL UNIQUE CHECK (length(token_hash) = 32), -- SHA-256 of the token in the link
  member_id  TEXT    NOT NULL REFERENCES members (id),
  created_at INTEGER NOT NULL, -- ms
  expires_at INTEGER NOT NULL, -- ms
  spent_at   INTEGER           -- ms; when used, or replaced by a later link
) STRICT;

-- WebAuthn credentials.
CREATE TABLE passkeys (
  id           TEXT    NOT NULL PRIMARY KEY, -- the credential's id, base64url
  member_id    TEXT    NOT NULL REFERENCES members (id),
  name         TEXT    NOT NULL,    -- chosen by its member
  public_key   BLOB    NOT NULL,    -- COSE
  counter      INTEGER NOT NULL,    -- the device's signature counter
  transports   TEXT    NOT NULL,    -- JSON array: how a browser may reach it
  created_at   INTEGER NOT NULL,    -- ms
  last_used_at INTEGER,             -- ms
  removed_at   INTEGER              -- ms
) STRICT;

CREATE INDEX passkeys_member ON passkeys (member_id);

-- Who did what to desks, keys and members. Rows are never changed or deleted.
CREATE TABLE audit (
  id         INTEGER PRIMARY KEY, -- rises in the order of the actions
  at         INTEGER NOT NULL,    -- ms
  desk_id    INTEGER REFERENCES desks (id), -- NULL: done to a read key for all desks
  member_id  TEXT    REFERENCES members (id), -- who did it; NULL: an administrator on the command line
  action     TEXT    NOT NULL,    -- such as "key.revoked"
  key_id     TEXT    REFERENCES api_keys (id), -- the key it was done to
  subject_id TEXT    REFERENCES members (id), -- the member it was done to
  detail     TEXT,                -- more for the reader, in words
  client     TEXT,                -- the client's IP address; NULL: the command line
  os_user    TEXT                 -- the administrator's name in the operating system; NULL: a member or a stranger
) STRICT;

CREATE INDEX audit_desk ON audit (desk_id);
CREATE INDEX audit_action ON audit (desk_id, action);
CREATE INDEX audit_member ON audit (desk_id, action, member_id);
CREATE INDEX audit_key ON audit (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX audit_signed_in ON audit (member_id, at) WHERE action = 'member.signed_in';

-- Where notices go. A removed place keeps its row: a restore of a backup must not bring it back.
CREATE TABLE notice_places (
  id          TEXT    NOT NULL PRIMARY KEY, -- ULID
  desk_id     INTEGER REFERENCES desks (id), -- NULL: the operator's
  destination TEXT    NOT NULL CHECK (destination IN ('webhook', 'ntfy', 'email', 'slack', 'discord', 'mattermost')),
  shown       TEXT    NOT NULL,    -- what people are shown: an e-mail address, or the host and the end of the URL
  sealed      BLOB,                -- URL, token and secret: AES-256-GCM with a key that is not in the database; NULL for e-mail, and removed
  kinds       TEXT,                -- JSON array: which notices; NULL: all
  by_admin    INTEGER NOT NULL,    -- 1: added by an administrator on the command line
  suppressed  INTEGER NOT NULL DEFAULT 0, -- notices beyond the limit per hour, until one says how many
  created_at  INTEGER NOT NULL,    -- ms
  removed_at  INTEGER              -- ms; nothing is sent there since then
) STRICT;

CREATE INDEX notice_places_desk ON notice_places (desk_id, id);

-- Notices on their way to a place, and the latest that arrived or failed.
CREATE TABLE notice_deliveries (
  id         TEXT    NOT NULL PRIMARY KEY, -- ULID; receivers get it as the message's id, with each attempt
  place_id   TEXT    NOT NULL REFERENCES notice_places (id),
  notice     TEXT    NOT NULL, -- JSON: see src/domain/notice/notice.ts
  is_test    INTEGER NOT NULL, -- 1: somebody waits for its outcome; it is tried once
  created_at INTEGER NOT NULL, -- ms
  due_at     INTEGER,          -- ms; when it is tried next; NULL: it arrived or was given up
  attempts   INTEGER NOT NULL DEFAULT 0,
  tried_at   INTEGER,          -- ms
  arrived_at INTEGER,          -- ms
  answer     TEXT              -- to the last attempt, or why there was none
) STRICT;

CREATE INDEX notice_deliveries_due ON notice_deliveries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX notice_deliveries_place ON notice_deliveries (place_id, id);

-- Troubles that people were told of and that last.
CREATE TABLE notice_troubles (
  name     TEXT    NOT NULL PRIMARY KEY, -- kind, desk and subject
  kind     TEXT    NOT NULL,
  desk_id  INTEGER REFERENCES desks (id), -- NULL: the operator's
  subject  TEXT    NOT NULL,
  began_at INTEGER NOT NULL, -- ms
  told_at  INTEGER NOT NULL, -- ms; when the last notice about it was queued
  count    INTEGER NOT NULL  -- what happened since, for kinds that count
) STRICT;
