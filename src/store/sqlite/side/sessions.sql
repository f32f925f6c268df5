-- Who is signed in to the console. This file is in no backup, is replaced by an empty one if it cannot be
-- read, and may be deleted while the server is stopped: then everyone signs in again, and no browser is known.

CREATE TABLE sessions (
  id            TEXT    NOT NULL PRIMARY KEY, -- SHA-256 of the token in the cookie, hexadecimal
  member_id     TEXT    NOT NULL,
  signed_out_at INTEGER NOT NULL, -- ms; the member's when the session began
  passkey_id    TEXT,             -- NULL: began with a password
  browser       TEXT    NOT NULL, -- such as "Firefox on Linux"
  address       TEXT    NOT NULL, -- the client's IP address
  started_at    INTEGER NOT NULL, -- ms
  seen_at       INTEGER NOT NULL  -- ms, the last request; written at most once a minute
) STRICT;

CREATE INDEX sessions_member ON sessions (member_id);

-- Signs the cookies of browsers in which a member has signed in: see src/console/server/limits/throttle.ts.
CREATE TABLE device_secret (
  one    INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  secret BLOB    NOT NULL CHECK (length(secret) = 32)
) STRICT;
