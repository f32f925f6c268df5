/** When silence is a notice: the fields of its form, and what was typed into them. */
import type { VNode } from "preact";
import {
  type SilenceRule,
  type WatchedHours,
  type Weekday,
  weekdays,
} from "../../../domain/desk/silence.ts";
import { UserError } from "../../../lib/errors.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../lib/text/time.ts";
import { describeSpan } from "../../../lib/text/words.ts";
import { useVisit } from "../../ui/context.ts";
import { Choices, Field, type Option } from "../../ui/forms.tsx";

const USUAL = "usual";
const DAY_BEGINS = "00:00";
const ZONE_DEFAULT = "UTC";

const spans: readonly number[] = [
  ...[5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 4, 8, 12, 24].map((hours) => hours * HOUR_MS),
  ...[2, 3, 7].map((days) => days * DAY_MS),
];

export function SilenceFields({ spanMs, hours }: SilenceRule): VNode {
  const { form } = useVisit();
  const typed = (name: string, before = ""): string => form.get(name) ?? before;
  const time = { type: "time", autocomplete: "off" } as const;
  const zones = { list: "zones" };
  return (
    <>
      <Field
        id="span"
        label="Tell us when no signal has come for"
        options={optionsFor(spanMs)}
        value={typed("span", spanMs === null ? USUAL : String(spanMs))}
      />
      <Choices
        name="day"
        legend="Only on these days (none: at any time)"
        options={weekdays.map((day) => ({ value: day, name: day }))}
        chosen={hours?.days ?? []}
      />
      <Field id="from" label="From" {...time} value={typed("from", hours?.from)} />
      <Field id="to" label="To" {...time} value={typed("to", hours?.to)} />
      <Field
        id="time-zone"
        label="Time zone of these hours"
        hint="Such as America/New_York. Silence is counted from when the hours begin."
        type="text"
        {...zones}
        autocomplete="off"
        spellcheck={false}
        value={typed("time-zone", hours?.zone ?? ZONE_DEFAULT)}
      />
      <datalist id="zones">
        {Intl.supportedValuesOf("timeZone").map((zone) => (
          <option value={zone} />
        ))}
      </datalist>
    </>
  );
}

/** With the desk's own span, which an administrator may have set to another one. */
function optionsFor(spanMs: number | null): Option[] {
  const all = spanMs === null ? spans : [...new Set([...spans, spanMs])];
  return [
    { value: USUAL, name: "three times as long as usual, and an hour at least" },
    ...all
      .toSorted((one, other) => one - other)
      .map((span) => ({ value: String(span), name: describeSpan(span) })),
  ];
}

/** Without a day: at any time. Without times: the whole day. Throws a `UserError`. */
export function readSilenceRule(form: URLSearchParams): SilenceRule {
  const span = form.get("span") ?? USUAL;
  if (span !== USUAL && !/^\d{1,12}$/.test(span)) {
    throw new UserError("Choose after how long you want to be told.");
  }
  const given = (name: string, otherwise: string): string => form.get(name) || otherwise;
  const days = form.getAll("day") as Weekday[];
  const hours: WatchedHours = {
    days,
    from: given("from", DAY_BEGINS),
    to: given("to", DAY_BEGINS),
    zone: given("time-zone", ZONE_DEFAULT).trim(),
  };
  return { spanMs: span === USUAL ? null : Number(span), hours: days.length === 0 ? null : hours };
}
