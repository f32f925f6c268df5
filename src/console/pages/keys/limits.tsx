/** The limits of a key: in the form that creates it, and on its page. */
import type { VNode } from "preact";
import type { Rejects } from "../../../domain/activity/activity.ts";
import type { ApiKey } from "../../../domain/key/key.ts";
import {
  type AskedLimits,
  type KeyLimits,
  NETWORKS_MAX,
  RATE_MAX,
} from "../../../domain/key/limits.ts";
import { sources, types } from "../../../domain/signal/signal.ts";
import { plural } from "../../../lib/text/words.ts";
import type { ConsoleServices } from "../../server/services.ts";
import type { MemberVisit } from "../../server/visit.ts";
import { useVisit } from "../../ui/context.ts";
import { Field } from "../../ui/forms.tsx";
import { Past } from "../../ui/times.tsx";
import { lastDayFrom } from "./key-list.ts";

const networksHint = `Addresses and ranges such as 203.0.113.0/24 or 2001:db8::/32, up to ${NETWORKS_MAX}, separated by commas. From elsewhere the key is answered like an unknown one.`;
const rateHint = `Requests per second, from 1 to ${RATE_MAX.toLocaleString("en")}; bursts of twice that.`;

/** The part of a form that is closed until somebody opens it. The checkboxes are named by their values. */
export function LimitFields({ isInvalid }: { isInvalid: boolean }): VNode {
  const { form } = useVisit();
  const names = ["networks", "rate", ...sources, ...types];
  const typed = { autocomplete: "off", spellcheck: false, "aria-invalid": isInvalid || undefined };
  return (
    <details open={names.some((name) => (form.get(name) ?? "") !== "")}>
      <summary>Limits</summary>
      <p class="hint">They cannot be changed later. A key that replaces this one has the same.</p>
      <Field
        id="networks"
        label="Works from (optional)"
        hint={networksHint}
        value={form.get("networks") ?? ""}
        {...typed}
      />
      <Choices legend="Sends only these sources (optional)" names={sources} />
      <Choices legend="Sends only these types (optional)" names={types} />
      <Field
        id="rate"
        label="Rate (optional)"
        hint={rateHint}
        value={form.get("rate") ?? ""}
        inputmode="numeric"
        {...typed}
      />
    </details>
  );
}

function Choices({ legend, names }: { legend: string; names: readonly string[] }): VNode {
  const { form } = useVisit();
  return (
    <fieldset>
      <legend>{legend}</legend>
      {names.map((name) => (
        <label>
          <input type="checkbox" name={name} checked={form.has(name)} />
          {name}
        </label>
      ))}
    </fieldset>
  );
}

export function limitsIn(form: URLSearchParams): AskedLimits {
  const rate = (form.get("rate") ?? "").trim();
  const networks = (form.get("networks") ?? "").split(/[\s,]+/);
  return {
    networks: networks.filter((network) => network !== ""),
    sources: sources.filter((name) => form.has(name)),
    types: types.filter((name) => form.has(name)),
    rate: rate === "" ? null : Number(/^\d+$/.test(rate) ? rate : Number.NaN),
  };
}

export function LimitList({ limits }: { limits: KeyLimits }): VNode {
  const { networks, sources: ofSources, types: ofTypes, rate } = limits;
  return (
    <ul class="plain-list">
      {networks !== null && <li>Works from {networks.join(", ")}</li>}
      {ofSources !== null && <li>Sends only {ofSources.join(", ")}</li>}
      {ofTypes !== null && <li>Sends only {ofTypes.join(", ")}</li>}
      {rate !== null && <li>{plural(rate, "request")} per second</li>}
    </ul>
  );
}

/** The requests of the last 24 hours that came from outside its networks; undefined: there are none. */
export async function foreignUse(
  { activity }: ConsoleServices,
  { member: { deskId }, now }: MemberVisit,
  { id: keyId, limits }: ApiKey,
): Promise<Rejects | undefined> {
  if (limits?.networks == null) return undefined;
  const since = { width: "hour", from: lastDayFrom(now) } as const;
  const refused = await activity.rejects({ deskId, keyId, status: 401, since, limit: 10 });
  return refused.find(({ error }) => error === "foreign_network");
}

export function ForeignUseNotice({
  apiKey,
  foreign,
}: {
  apiKey: ApiKey;
  foreign: Rejects | undefined;
}): VNode | null {
  if (foreign === undefined) return null;
  const { id, count, lastAt } = foreign;
  return (
    <p class="problem">
      Something uses this key from outside its networks: {plural(count, "request")} in the last 24
      hours, {count > 1 && "each "}answered 401, the latest <Past at={lastAt} />. If it is not your
      bot, somebody has the key: create another one, and revoke this one.{" "}
      <a href={`/activity/rejects/${id}?key=${apiKey.id}`}>See the addresses</a>
    </p>
  );
}
