/** @jsxImportSource preact */
/** The choice of a key, to see only what was sent with it. */
import type { VNode } from "preact";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { shorten } from "../shorten.ts";

/** Of those that have ended, so many of the newest: the page stays small. */
const ENDED_MAX = 50;

export function KeySelect({
  keys,
  chosen,
  nobody,
  now,
}: {
  /** Newest first. */
  keys: readonly ApiKey[];
  /** Its id; it is offered however old it is. */
  chosen: string | undefined;
  /** What it says where no key is chosen. */
  nobody: string;
  now: number;
}): VNode {
  const active = keys.filter((key) => keyState(key, now) === "active");
  const ended = keys.filter((key) => keyState(key, now) !== "active");
  const offered = ended.filter(({ id }, index) => index < ENDED_MAX || id === chosen);
  return (
    <select id="key" name="key">
      <option value="">{nobody}</option>
      {[...active, ...offered].map(({ id, label, last4 }) => (
        <option value={id} selected={id === chosen}>
          {label === null ? `…${last4}` : `${shorten(label)} …${last4}`}
        </option>
      ))}
    </select>
  );
}
