/** What `signalbox doctor` finds out about clocks. */
import ms from "ms";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../domain/time.ts";
import { newestSignals } from "../store/open.ts";
import { median } from "./disk.ts";
import { type Facts, type Finding, ok, warning } from "./finding.ts";
import { plural } from "./print.ts";

/** Signals whose clocks are compared with ours. */
const CLOCKS_MAX = 100;
/** A signal is never received before its time, and a little after it. */
const AHEAD_MS_MAX = 2_000;
const BEHIND_MS_MAX = 60_000;

/** The median, because some bots have a wrong clock or send late. */
export async function checkClock({ config: { dataDir }, now }: Facts): Promise<Finding> {
  const signals = (await newestSignals(dataDir, CLOCKS_MAX)) ?? [];
  const timed = signals.flatMap(({ signal_time: sentAt, received_at, key_id }) =>
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
