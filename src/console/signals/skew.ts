/** How far a bot's clock and the server's are apart, for people. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Above it two clocks are not merely imprecise, nor a network slow. */
const REMARKABLE_MS = MINUTE_MS;

/** `received_at` minus `signal_time`, as a sentence without its full stop. */
export function describeSkew(skewMs: number): string {
  if (skewMs === 0) return "Received in the same millisecond";
  const span = describeSpan(Math.abs(skewMs));
  if (skewMs < 0) {
    return `Received ${span} before the signal's own time: the bot's clock is ahead of the server's`;
  }
  const remark = skewMs > REMARKABLE_MS ? ": sent late, or the bot's clock is behind" : "";
  return `Received ${span} after the signal's own time${remark}`;
}

/** In the two largest units that say something. */
export function describeSpan(ms: number): string {
  if (ms < SECOND_MS) return `${ms} ms`;
  if (ms < MINUTE_MS) return `${Math.trunc(ms / 100) / 10} s`;
  if (ms < HOUR_MS) return two(ms, MINUTE_MS, "min", SECOND_MS, "s");
  if (ms < 2 * DAY_MS) return two(ms, HOUR_MS, "h", MINUTE_MS, "min");
  const days = Math.trunc(ms / DAY_MS);
  return `${days.toLocaleString("en")} days`;
}

function two(ms: number, large: number, largeName: string, small: number, smallName: string) {
  const rest = Math.trunc((ms % large) / small);
  const first = `${Math.trunc(ms / large)} ${largeName}`;
  return rest === 0 ? first : `${first} ${rest} ${smallName}`;
}
