/** Differences between clocks and long texts, for people. */
import { showHidden } from "../../lib/text/hidden.ts";
import { MINUTE_MS } from "../../lib/text/time.ts";
import { describeSpan } from "../../lib/text/words.ts";

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
