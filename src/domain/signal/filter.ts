/** What a signal can be filtered by, and how the values are written; for the console and the command line. */
import { SignalBody } from "./signal.ts";

const { source, type, side, direction } = SignalBody.properties;

/** Fields with a list of values. */
export const choices: Readonly<
  Record<"source" | "type" | "side" | "direction", readonly string[]>
> = {
  source: source["enum"] as string[],
  type: type["enum"] as string[],
  side: side["enum"] as string[],
  direction: direction["enum"] as string[],
};

const DATE = String.raw`\d{4}-\d{2}-\d{2}`;
const TIME = String.raw`\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?`;
const ZONE = String.raw`Z|[+-]\d{2}:\d{2}`;
const MOMENT = new RegExp(`^(${DATE})(?:[T ](${TIME}))?(${ZONE})?$`);

/**
 * Reads a time such as `2026-11-22`, `2026-11-22T10:30` or `2026-11-22 10:30:05+01:00`, in UTC unless it
 * names a zone. Returns epoch milliseconds, or null if it is not a time.
 */
export function readMoment(text: string): number | null {
  const [, date, time = "00:00", zone = "Z"] = MOMENT.exec(text) ?? [];
  if (date === undefined || !isDate(date)) return null;
  const at = Date.parse(`${date}T${time}${zone}`);
  // No signal was received before 1970, and no id is as old.
  return Number.isNaN(at) ? null : Math.max(0, at);
}

/** `Date.parse` takes 30 February for 2 March. */
function isDate(date: string): boolean {
  const at = Date.parse(date);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date);
}
