/** What a storage answers with: at once, or later if it is on another machine. */

export type Awaitable<T> = T | Promise<T>;
