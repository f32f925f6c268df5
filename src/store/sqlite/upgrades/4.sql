-- Runs have their filters beside them, and no part is taken for another. The next start makes them anew.
DELETE FROM dedupe_runs;
DROP TABLE dedupe_blocks;

CREATE TABLE dedupe_blocks (
  id    INTEGER PRIMARY KEY, -- run × 2^24 + block
  words BLOB    NOT NULL     -- 500 entries, the last block of a run fewer; then a CRC-32
) STRICT;

CREATE TABLE dedupe_filters (
  id    INTEGER PRIMARY KEY, -- run × 2^24 + part
  words BLOB    NOT NULL     -- 63 lines of the run's Bloom filter, the last part fewer; then a CRC-32
) STRICT;
