/** The ways to find signals: a search by id, filters as chips, and the export of what they show. */
import download from "lucide/dist/esm/icons/download.mjs";
import search from "lucide/dist/esm/icons/search.mjs";
import type { VNode } from "preact";
import { type ApiKey, redactKeys } from "../../../domain/key/key.ts";
import { choices } from "../../../domain/signal/filter.ts";
import { Icon, KeyName, QuietLink } from "../../ui/components.tsx";
import { keyOptions } from "../../ui/forms.tsx";
import { Time } from "../../ui/times.tsx";
import { type Filter, FilterChips, FilterForm, Popover, Toolbar } from "../../ui/toolbar.tsx";
import { shorten } from "../../ui/words.ts";
import { EXPORT_MINUTES_MAX, EXPORT_ROWS_MAX } from "./export.ts";
import { DIFFERING, type FilterInput, type FilterName, pathWith } from "./filter.ts";

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
  const filters = filtersOf(input, keys, symbols);
  const count = Object.keys(input.typed).length;
  return (
    <Toolbar end={<Export input={input} />}>
      <Search find={find} />
      <FilterForm path="/signals" filters={filters} name="Filter" inPairs />
      <FilterChips path="/signals" filters={filters} />
      {count > 1 && (
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
      <Icon of={search} />
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

function filtersOf(
  { typed, filter }: FilterInput,
  keys: readonly ApiKey[],
  symbols: readonly string[],
): Filter[] {
  const filterBy = (id: FilterName, chip: string, field: Partial<Filter["field"]>): Filter => {
    const shown = shorten(typed[id] ?? "");
    return { id, chip, value: typed[id], shown, field: { label: chip, ...field } };
  };
  const choice = (id: keyof typeof choices, chip: string) => {
    const options = choices[id].map((name) => ({ value: name, name }));
    return filterBy(id, chip, { options: [{ value: "", name: "any" }, ...options] });
  };
  const moment = (id: "from" | "to", chip: string): Filter => {
    const input = { type: "datetime-local", step: "1", autocomplete: "off" } as const;
    const at = filter[id];
    return {
      ...filterBy(id, chip, { label: `${chip} (UTC)`, ...input }),
      ...(at === null ? {} : { shown: <Time at={at} /> }),
    };
  };
  const key = keys.find(({ id }) => id === typed.key);
  const symbol = { label: "Symbol contains", type: "text", autocomplete: "off" } as const;
  return [
    { ...filterBy("symbol", "Symbol", symbol), suggestions: symbols },
    choice("source", "Source"),
    choice("type", "Type"),
    choice("side", "Side"),
    choice("direction", "Direction"),
    {
      ...filterBy("key", "Key", { options: keyOptions(keys, "any") }),
      ...(key === undefined ? {} : { shown: <KeyName {...key} isShort /> }),
    },
    moment("from", "From"),
    moment("to", "Before"),
    filterBy("duplicates", "Duplicates", {
      options: [
        { value: "", name: "any or none" },
        { value: DIFFERING, name: "that differ" },
      ],
    }),
  ];
}

function Export({ input }: { input: FilterInput }): VNode {
  const path = (format: string) => pathWith("/signals/export", input, { format });
  return (
    <Popover icon={download} name="Export">
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
