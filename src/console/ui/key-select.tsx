/** The choice of a key, to see only what was sent with it. */
import type { VNode } from "preact";
import type { ApiKey } from "../../domain/key.ts";
import { shorten } from "./shorten.ts";

export function KeySelect({
  keys,
  chosen,
  nobody,
}: {
  /** In this order. */
  keys: readonly ApiKey[];
  /** Its id. */
  chosen: string | undefined;
  /** What it says where no key is chosen. */
  nobody: string;
}): VNode {
  return (
    <select id="key" name="key">
      <option value="">{nobody}</option>
      {keys.map(({ id, label, last4 }) => (
        <option value={id} selected={id === chosen}>
          {label === null ? `…${last4}` : `${shorten(label)} …${last4}`}
        </option>
      ))}
    </select>
  );
}
