/** Numbers, spans and long texts in words for people. */
import { showHidden } from "../../lib/text/hidden.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/text/time.ts";

/** Describes `received_at` minus `signal_time` in a sentence without its full stop. */
export function describeSkew(skewMs: number): string {
  if (skewMs === 0) return "Received in the same millisecond";
  const span = describeSpan(Math.abs(skewMs));
  if (skewMs < 0) {
    return `Received ${span} before the signal's own time: the bot's clock is ahead of the server's`;
  }
  // More than imprecise clocks and a slow network explain.
  const remark = skewMs > MINUTE_MS ? ": sent late, or the bot's clock is behind" : "";
  return `Received ${span} after the signal's own time${remark}`;
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

/** For a browser's tab: what is hidden is marked, and the direction of the text changes nothing beside it. */
export function inTitle(text: string): string {
  return `\u2068${showHidden(shorten(text))}\u2069`;
}

const CHARACTERS_MAX = 60;

/** Shortens a text to so many code points, the last an ellipsis. */
export function shorten(text: string, max = CHARACTERS_MAX): string {
  // No text has more code points than UTF-16 units.
  if (text.length <= max) return text;
  const characters = Array.from(text);
  if (characters.length <= max) return text;
  return `${characters.slice(0, max - 1).join("")}…`;
}
