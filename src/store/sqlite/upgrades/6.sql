-- A desk can require passkeys.
ALTER TABLE desks ADD COLUMN passkeys_required INTEGER NOT NULL DEFAULT 0;
