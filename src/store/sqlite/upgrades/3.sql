-- A unique index put each random id on another page of it: see docs/performance.md.
DROP INDEX signals_client_signal_id;

-- Deduplication: where each client_signal_id of each desk was stored first. Made from the signals, and
-- kept by src/store/sqlite/dedupe/, which says what is in it.
CREATE TABLE dedupe_runs (
  id        INTEGER PRIMARY KEY,
  level     INTEGER NOT NULL, -- how often its entries were merged
  first_seq INTEGER NOT NULL, -- it has the entries of the signals from here
  last_seq  INTEGER NOT NULL, -- to here
  entries   INTEGER NOT NULL, -- how many
  seed      TEXT    NOT NULL, -- of the hashes, the same in all runs
  fences    BLOB    NOT NULL, -- the first hash of each block, 4 bytes each
  checksum  INTEGER NOT NULL  -- CRC-32 of all that is before it
) STRICT;

CREATE TABLE dedupe_blocks (
  id      INTEGER PRIMARY KEY, -- run × 2^24 + block
  entries BLOB    NOT NULL     -- 500 of them, the last block of a run fewer; then their CRC-32
) STRICT;
