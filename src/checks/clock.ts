/** The clocks of this machine and of the bots. */
import ms from "ms";
import { idsAheadMs } from "../domain/signal/id.ts";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../lib/text/time.ts";
import { plural } from "../lib/text/words.ts";
import { median } from "./disk.ts";
import { type Context, type Finding, ok, warning } from "./finding.ts";

/** Signals whose clocks are compared with ours. */
const CLOCKS_MAX = 100;
/** A signal is never received before its time, and a little after it. */
const AHEAD_MS_MAX = 2_000;
const BEHIND_MS_MAX = 60_000;

/** Ids go on from the greatest when the clock has stepped back. */
export async function checkIds({ newest, now }: Context): Promise<Finding> {
  const [last] = await newest(1);
  const ahead = last === undefined ? null : idsAheadMs(last.id, now);
  if (ahead === null) return ok("The newest signal's id is not ahead of this machine's clock.");
  return warning(
    `The newest signal's id is ${describeSpan(ahead)} ahead of this machine's clock, which was ahead itself, or is behind now.`,
    "check this clock with timedatectl; if it is right, do nothing: ids keep the order of storage, and times come from received_at",
  );
}

/** The median, because some bots have a wrong clock or send late. */
export async function checkClock({ newest, now }: Context): Promise<Finding> {
  const timed = (await newest(CLOCKS_MAX)).flatMap(({ signal_time: sentAt, received_at, key_id }) =>
    sentAt == null || received_at < now - DAY_MS ? [] : [{ sentAt, received_at, key_id }],
  );
  if (timed.length === 0)
    return ok("No signal of the last 24 hours has a signal_time to compare with.");
  const latest = `the latest ${plural(timed.length, "signal")}`;
  const inSeconds = timed.find(
    ({ sentAt, received_at }) => Math.abs(sentAt * SECOND_MS - received_at) < DAY_MS,
  );
  if (inSeconds !== undefined) {
    return warning(
      `A signal_time of ${latest} seems to be in seconds: ${inSeconds.sentAt}, sent with key ${inSeconds.key_id}.`,
      "let the bot send milliseconds",
    );
  }
  const skew = median(timed.map(({ sentAt, received_at }) => sentAt - received_at));
  const sentence = `The signal_time of ${latest} is ${describeSpan(Math.abs(skew))} ${skew > 0 ? "ahead of" : "behind"} this machine's clock (median).`;
  if (skew <= AHEAD_MS_MAX && skew >= -BEHIND_MS_MAX) return ok(sentence);
  return warning(
    sentence,
    `check this clock with timedatectl; if it is right, the bots' clocks are wrong${skew < 0 ? ", or they send late" : ""}`,
  );
}

function describeSpan(span: number): string {
  return span < 2 * MINUTE_MS ? `${(span / SECOND_MS).toFixed(1)} s` : ms(span, { long: true });
}
