-- A limit on the active keys of each desk, and lists of keys that look at no more than they show.
ALTER TABLE desks ADD COLUMN keys_max INTEGER NOT NULL DEFAULT 100;

DROP INDEX api_keys_desk;
CREATE INDEX api_keys_desk ON api_keys (desk_id, id);
CREATE INDEX api_keys_active ON api_keys (desk_id, ifnull(expires_at, 9223372036854775807))
  WHERE revoked_at IS NULL;
CREATE INDEX audit_key ON audit (key_id) WHERE key_id IS NOT NULL;
