/** The rows of the table of goals, in its order: the names that `--rows` takes. */
export const rowNames = [
  "new",
  "v7",
  "v4",
  "postgresql",
  "scale",
  "feed",
  "memory",
  "start",
  "disk",
] as const;

export type RowName = (typeof rowNames)[number];
