-- The audit has the client's address.
ALTER TABLE audit RENAME TO audit_before;
DROP INDEX audit_desk;

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

INSERT INTO audit (id, at, desk_id, member_id, action, key_id, subject_id, detail)
SELECT id, at, desk_id, member_id, action, key_id, subject_id, detail FROM audit_before;

DROP TABLE audit_before;
CREATE INDEX audit_desk ON audit (desk_id);
