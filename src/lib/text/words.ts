/** Numbers, times and sizes in words, for commands, checks and the log. */

/** Formats epoch milliseconds as UTC to the second, and null as a dash. */
export function formatTime(time: number | null): string {
  return time === null ? "-" : `${new Date(time).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** `1 signal`, `1,200 signals`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

export function formatBytes(bytes: number): string {
  const mib = Math.floor(bytes / 1024 / 1024);
  return mib < 10_240 ? `${mib} MiB` : `${Math.floor(mib / 1024)} GiB`;
}
