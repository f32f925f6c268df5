/** Moments on pages. The server writes them in UTC; console.js writes the same in the reader's time zone. */
import type { VNode } from "preact";
import { None } from "./components.tsx";
import { useVisit } from "./context.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/text/time.ts";

const inUtc = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
const exact = inUtc({ dateStyle: "medium", timeStyle: "medium" });
/** `dateStyle` and `timeStyle` go with no other option. */
const precise = inUtc({
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
});
const clock = inUtc({ timeStyle: "medium" });
const day = inUtc({ day: "numeric", month: "short" });
const dayOfYear = inUtc({ dateStyle: "medium" });
const minute = inUtc({ timeStyle: "short" });

const daysBetween = (at: number, now: number) => Math.floor(now / DAY_MS) - Math.floor(at / DAY_MS);

/** Such as "12 s ago", "in 5 min", "yesterday 14:02", "19 Nov 14:02" or "19 Nov 2025". */
export function briefly(at: number, now: number): string {
  const distance = Math.abs(at - now);
  if (distance < DAY_MS) {
    const [unit, ms] =
      distance < MINUTE_MS
        ? ["s", 1_000]
        : distance < HOUR_MS
          ? ["min", MINUTE_MS]
          : ["h", HOUR_MS];
    return at <= now
      ? `${Math.floor(distance / ms)} ${unit} ago`
      : `in ${Math.round(distance / ms)} ${unit}`;
  }
  if (at > now && distance < 100 * DAY_MS) {
    const days = Math.round(distance / DAY_MS);
    return `in ${days} ${days === 1 ? "day" : "days"}`;
  }
  if (daysBetween(at, now) === 1) return `yesterday ${minute.format(at)}`;
  if (distance < 300 * DAY_MS) return `${day.format(at)} ${minute.format(at)}`;
  return dayOfYear.format(at);
}

interface Shown {
  /** Epoch milliseconds. */
  readonly at: number;
}

/** Null: "never". */
interface Perhaps {
  readonly at: number | null;
}

/** With its date and seconds. */
export function Time({ at }: Perhaps): VNode {
  return <Stamp at={at} as="exact" write={(from) => exact.format(from)} />;
}

/** With its date and milliseconds. */
export function PreciseTime({ at }: Shown): VNode {
  return <Stamp at={at} as="precise" write={(from) => precise.format(from)} />;
}

/** The time of day with seconds, and the date when it is not today's. */
export function Clock({ at }: Shown): VNode {
  return <Stamp at={at} as="clock" write={(_, now) => ofDay(at, now, clock)} />;
}

/** The time of day, and the date when it is not today's. */
export function Moment({ at }: Shown): VNode {
  return <Stamp at={at} as="moment" write={(_, now) => ofDay(at, now, minute)} />;
}

function ofDay(at: number, now: number, time: Intl.DateTimeFormat): string {
  return daysBetween(at, now) === 0 ? time.format(at) : `${day.format(at)} ${time.format(at)}`;
}

/** A day of UTC, whatever the reader's zone. */
export function Day({ at }: Shown): VNode {
  return <>{day.format(at)}</>;
}

/** How long ago something happened: another thread's clock may be read a moment after ours. */
export function Past({ at }: Perhaps): VNode {
  const { now } = useVisit();
  return <PastOrFuture at={at === null ? null : Math.min(at, now)} />;
}

/** Like {@link Past}, for a moment that is recorded only once per minute: there may have been a later one. */
export function PastMinute({ at }: Perhaps): VNode {
  return <Stamp at={at} as="minute" write={toTheMinute} />;
}

function toTheMinute(at: number, now: number): string {
  return now - at < MINUTE_MS ? "less than a minute ago" : briefly(at, now);
}

/** How far away a moment is. */
export function PastOrFuture({ at }: Perhaps): VNode {
  return <Stamp at={at} as="brief" write={briefly} />;
}

/** `clock`: in lists with many; console.js adds the title. */
function Stamp({
  at,
  as,
  write,
}: {
  at: number | null;
  as: string;
  write: (at: number, now: number) => string;
}): VNode {
  const { now } = useVisit();
  if (at === null) return <None>never</None>;
  const title = as === "clock" ? undefined : `${precise.format(at)} UTC`;
  return (
    <time dateTime={new Date(at).toISOString()} title={title} data-as={as}>
      {write(at, now)}
    </time>
  );
}
