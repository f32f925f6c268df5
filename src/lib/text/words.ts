/** Numbers, times, spans and sizes in words. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "./time.ts";

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

/** Such as "3 h 12 min" or "4 days". */
export function describeSpan(ms: number): string {
  if (ms < SECOND_MS) return `${ms} ms`;
  if (ms < MINUTE_MS) return `${Math.trunc(ms / 100) / 10} s`;
  if (ms < HOUR_MS) return two(ms, MINUTE_MS, "min", SECOND_MS, "s");
  if (ms < 2 * DAY_MS) return two(ms, HOUR_MS, "h", MINUTE_MS, "min");
  return `${Math.trunc(ms / DAY_MS).toLocaleString("en")} days`;
}

function two(ms: number, large: number, largeName: string, small: number, smallName: string) {
  const rest = Math.trunc((ms % large) / small);
  const first = `${Math.trunc(ms / large)} ${largeName}`;
  return rest === 0 ? first : `${first} ${rest} ${smallName}`;
}
