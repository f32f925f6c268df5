/** What was asked for cannot be done; the text says what can. */
export class UsageError extends Error {}
