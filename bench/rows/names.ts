/** The rows of the table of goals, in its order: what `--rows` can be told. */
export const rowNames = [
  "new",
  "stored",
  "p99",
  "open",
  "single",
  "duplicates",
  "401",
  "422",
  "fastify",
  "redis",
  "postgresql",
  "slow-disk",
  "memory",
  "disk",
  "start",
] as const;

export type RowName = (typeof rowNames)[number];
