/** The ways to find signals: a search by id, filters as chips, and the export of what they show. */
import type { ComponentChildren, VNode } from "preact";
import { type ApiKey, redactKeys } from "../../../domain/key/key.ts";
import { choices } from "../../../domain/signal/filter.ts";
import { KeyName, QuietLink } from "../../ui/components.tsx";
import { Field, KeySelect, Select } from "../../ui/forms.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Time } from "../../ui/times.tsx";
import { Chip, FilterPopover, Popover, Toolbar } from "../../ui/toolbar.tsx";
import { shorten } from "../../ui/words.ts";
import { EXPORT_MINUTES_MAX, EXPORT_ROWS_MAX } from "./export.ts";
import { type FilterInput, type FilterName, filterNames, pathWith } from "./filter.ts";

const SEARCH = "Find by id or client_signal_id";

interface Shown {
  readonly input: FilterInput;
  /** To choose from. */
  readonly keys: readonly ApiKey[];
  /** To suggest. */
  readonly symbols: readonly string[];
  /** The id that was searched for; null: none was. */
  readonly find: string | null;
}

export function SignalToolbar({ input, keys, symbols, find }: Shown): VNode {
  const names = filterNames.filter((name) => input.typed[name] !== undefined);
  return (
    <Toolbar end={<Export input={input} />}>
      <Search find={find} />
      <FilterPopover>
        <FilterForm input={input} keys={keys} symbols={symbols} />
      </FilterPopover>
      {names.map((name) => (
        <Chip name={chipNames[name]} without={pathWithout(input, name)}>
          {chipValue(input, keys, name)}
        </Chip>
      ))}
      {names.length > 1 && (
        <a class="soft" href="/signals">
          Clear
        </a>
      )}
    </Toolbar>
  );
}

/** Sent with Enter; "/" moves the focus here. */
function Search({ find }: Pick<Shown, "find">): VNode {
  return (
    <form class="search" method="get" action="/signals" role="search">
      <Icon name="search" />
      <input
        type="search"
        name="find"
        aria-label={SEARCH}
        placeholder={SEARCH}
        value={redactKeys(find ?? "")}
        autocomplete="off"
        required
      />
    </form>
  );
}

const chipNames: Readonly<Record<FilterName, string>> = {
  symbol: "Symbol",
  source: "Source",
  type: "Type",
  side: "Side",
  direction: "Direction",
  key: "Key",
  from: "From",
  to: "Before",
};

function chipValue(
  { typed, filter }: FilterInput,
  keys: readonly ApiKey[],
  name: FilterName,
): ComponentChildren {
  const key = keys.find(({ id }) => name === "key" && id === typed.key);
  if (key !== undefined) return <KeyName {...key} isShort />;
  const at = name === "from" || name === "to" ? filter[name] : null;
  return at === null ? shorten(typed[name] ?? "") : <Time at={at} />;
}

function pathWithout({ typed }: FilterInput, name: FilterName): string {
  const { [name]: _, ...others } = typed;
  return pathWith("/signals", { typed: others });
}

function FilterForm({ input, keys, symbols }: Omit<Shown, "find">): VNode {
  const { typed } = input;
  return (
    <form class="filter pairs" method="get" action="/signals">
      <Field id="symbol" label="Symbol contains">
        <input
          id="symbol"
          name="symbol"
          type="text"
          list="symbols"
          value={typed.symbol ?? ""}
          autocomplete="off"
        />
      </Field>
      <datalist id="symbols">
        {symbols.map((symbol) => (
          <option value={symbol} />
        ))}
      </datalist>
      <Choice id="source" label="Source" value={typed.source} />
      <Choice id="type" label="Type" value={typed.type} />
      <Choice id="side" label="Side" value={typed.side} />
      <Choice id="direction" label="Direction" value={typed.direction} />
      <Field id="key" label="Key">
        <KeySelect keys={keys} chosen={typed.key} none="any" />
      </Field>
      <Moment id="from" label="From (UTC)" value={typed.from} />
      <Moment id="to" label="Before (UTC)" value={typed.to} />
      <div class="actions">
        <button>Apply</button>
      </div>
    </form>
  );
}

function Choice({
  id,
  label,
  value,
}: {
  id: keyof typeof choices;
  label: string;
  value: string | undefined;
}): VNode {
  const options = choices[id].map((name) => ({ value: name, name }));
  return (
    <Field id={id} label={label}>
      <Select id={id} options={[{ value: "", name: "any" }, ...options]} value={value} />
    </Field>
  );
}

function Moment(field: { id: string; label: string; value: string | undefined }): VNode {
  return <Field type="datetime-local" step="1" autocomplete="off" {...field} />;
}

function Export({ input }: { input: FilterInput }): VNode {
  const path = (format: string) => pathWith("/signals/export", input, { format });
  return (
    <Popover icon="download" name="Export">
      <p>
        Exports the signals that match the filter, newest first, at most{" "}
        {EXPORT_ROWS_MAX.toLocaleString("en")}; for more, narrow the time range.
      </p>
      <p class="hint">
        The download stops after {EXPORT_MINUTES_MAX} minutes, if your browser reads nothing for 30
        seconds, or when you are signed out. In the CSV file a text that a spreadsheet could take
        for a formula has a <code>'</code> before it; NDJSON has every text as it was sent.
      </p>
      {/* Not "download": a browser would not show the page of a refusal. */}
      <p class="actions">
        <QuietLink to={path("csv")}>CSV</QuietLink>
        <QuietLink to={path("ndjson")}>NDJSON</QuietLink>
      </p>
    </Popover>
  );
}
