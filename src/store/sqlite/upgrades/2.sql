-- The desk console: members, and who did what. An old database takes a while: every signal is indexed by its desk.

-- Newest first, of one desk: the console's lists. (Every index entry ends with the row's seq.)
CREATE INDEX signals_desk ON signals (desk_id);

-- The people who may use the console for a desk. Rows are never deleted: the audit refers to them.
CREATE TABLE members (
  id            TEXT    NOT NULL PRIMARY KEY, -- ULID
  desk_id       INTEGER NOT NULL REFERENCES desks (id),
  email         TEXT    NOT NULL,   -- who it is, and the name to sign in with; lower case
  password_hash TEXT,               -- argon2id, PHC string; none for those with passkeys only
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
  detail     TEXT                 -- what a reader should know beside it, in words
) STRICT;

CREATE INDEX audit_desk ON audit (desk_id);
