/** The choices in the forms for keys, and the confirmation that a key is revoked. */
import { UserError } from "../../../lib/errors.ts";
import type { ApiKey, KeyScope } from "../../../domain/key/key.ts";
import { DAY_MS, HOUR_MS } from "../../../lib/text/time.ts";

interface Choice<T> {
  readonly value: string;
  readonly name: string;
  readonly means: T;
}

/** What a new key is for. */
export const scopes: readonly Choice<KeyScope>[] = [
  { value: "send", name: "Sending signals", means: "send" },
  { value: "read", name: "Reading signals", means: "read" },
];

/** How long a new key works; null: for ever. */
export const lifetimes: readonly Choice<number | null>[] = [
  { value: "never", name: "Never", means: null },
  { value: "30d", name: "In 30 days", means: 30 * DAY_MS },
  { value: "90d", name: "In 90 days", means: 90 * DAY_MS },
  { value: "1y", name: "In a year", means: 365 * DAY_MS },
];

/** How long a successor works; undefined: as long as the old key was made to, which the first choice says. */
export function successorLifetimesOf({
  lifetime_ms,
}: Pick<ApiKey, "lifetime_ms">): Choice<number | null | undefined>[] {
  const hours = lifetime_ms === null ? null : Math.round(lifetime_ms / HOUR_MS);
  const time = hours === null || hours % 24 > 0 ? `${hours} hours` : `${hours / 24} days`;
  const name = `${hours === null ? "Never" : `In ${time}`}, like the old key`;
  return [{ value: "same", name, means: undefined }, ...lifetimes];
}

/** How long an old key works beside its successor. */
export const overlaps: readonly Choice<number>[] = [
  { value: "1h", name: "1 hour", means: HOUR_MS },
  { value: "24h", name: "24 hours", means: 24 * HOUR_MS },
  { value: "7d", name: "7 days", means: 7 * DAY_MS },
];

export const SCOPE_DEFAULT = "send";
export const LIFETIME_DEFAULT = "never";
export const SUCCESSOR_LIFETIME_DEFAULT = "same";
export const OVERLAP_DEFAULT = "24h";

/** Throws a `UserError` with the sentence for a value that the form did not offer. */
export function choose<T>(choices: readonly Choice<T>[], value: string, sentence: string): T {
  const choice = choices.find((one) => one.value === value);
  if (choice === undefined) throw new UserError(sentence);
  return choice.means;
}

/** Returns what must be typed to revoke a key: its label as a page shows it, or else its last 4 characters. */
export function confirmationOf({ label, last4 }: Pick<ApiKey, "label" | "last4">): {
  readonly text: string;
  readonly isLabel: boolean;
} {
  return label === null ? { text: last4, isLabel: false } : { text: asSeen(label), isLabel: true };
}

export function isConfirmed(key: Pick<ApiKey, "label" | "last4">, typed: string): boolean {
  return asSeen(typed) === confirmationOf(key).text;
}

/** Pages show runs of white space as one space. */
function asSeen(text: string): string {
  return text.normalize("NFC").replaceAll(/\s+/g, " ").trim();
}
