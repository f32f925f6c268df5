/** The desk's signals, newest first, and the ways to find one. */
import type { VNode } from "preact";
import { type ApiKey, redactKeys } from "../../domain/key.ts";
import { choices } from "../../domain/signal-filter.ts";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import { KeyLink, None, Pager, Problem, QuietLink } from "../ui/components.tsx";
import { Field, KeySelect, Select } from "../ui/forms.tsx";
import { Layout } from "../ui/layout.tsx";
import { LiveStatus } from "../ui/live-status.tsx";
import { type Column, Row, Table } from "../ui/table.tsx";
import { Clock, Time } from "../ui/times.tsx";
import { shorten } from "../ui/words.ts";
import { assets } from "../web/assets.ts";
import type { MemberVisit } from "../web/visit.ts";
import { EXPORT_MINUTES_MAX, EXPORT_ROWS_MAX } from "./export.ts";
import { type FilterInput, pathWith } from "./filter.ts";
import type { SignalPage } from "./listing.ts";

const columns: readonly Column[] = [
  { name: "Received", phone: "more" },
  { name: "Symbol", phone: "main" },
  { name: "Side", phone: "main" },
  { name: "Price", phone: "main end", isNumber: true },
  { name: "Quantity", phone: "more end", isNumber: true },
  { name: "Source", phone: "more" },
  { name: "Type", phone: "more" },
  { name: "Key" },
];

interface SignalListing {
  readonly input: FilterInput;
  /** The id that was searched for; null: none was. */
  readonly find: string | null;
  readonly found: SignalPage;
  /** The newest that the page can know of. */
  readonly newestId: string;
  /** The first page: new signals appear on top of it. */
  readonly isLive: boolean;
  readonly keys: readonly ApiKey[];
  readonly now: number;
}

interface Listed {
  readonly listing: SignalListing;
}

export function SignalListPage({ visit, listing }: Listed & { visit: MemberVisit }): VNode {
  const { input, find, keys, found } = listing;
  return (
    <Layout
      title="Signals"
      visit={visit}
      place="/signals"
      scripts={[assets.localTimes.path, assets.live.path, assets.signals.path]}
    >
      {find !== null && found.signals.length === 0 && (
        <Problem>
          No signal of your desk has this <code>id</code> or <code>client_signal_id</code>.
        </Problem>
      )}
      {input.problems.length > 0 && (
        <Problem>Nothing was searched: {input.problems.join(", ")} cannot be understood.</Problem>
      )}
      <SearchForm find={find} />
      <FilterForm input={input} keys={keys} />
      {find === null && input.problems.length === 0 && <Found listing={listing} />}
      {find !== null && found.signals.length > 0 && <SignalTable listing={listing} />}
    </Layout>
  );
}

function SearchForm({ find }: { find: string | null }): VNode {
  return (
    <form class="actions" method="get" action="/signals" role="search">
      <label for="find">Find by id or client_signal_id</label>
      <input id="find" name="find" type="search" value={redactKeys(find ?? "")} required />
      <button class="quiet">Find</button>
    </form>
  );
}

function FilterForm({ input, keys }: { input: FilterInput; keys: readonly ApiKey[] }): VNode {
  const { typed } = input;
  const isUsed = Object.keys(typed).length > 0;
  const to = { name: "to", label: "Received before (UTC)", value: typed.to } as const;
  return (
    <details open={isUsed}>
      <summary>Filter</summary>
      <form class="filters" method="get" action="/signals">
        <Field id="symbol" label="Symbol" value={typed.symbol ?? ""} autocomplete="off" />
        <Choice id="source" label="Source" value={typed.source} />
        <Choice id="type" label="Type" value={typed.type} />
        <Choice id="side" label="Side" value={typed.side} />
        <Choice id="direction" label="Direction" value={typed.direction} />
        <Field id="key" label="Key">
          <KeySelect keys={keys} chosen={typed.key} none="any" />
        </Field>
        <Moment name="from" label="Received from (UTC)" value={typed.from} />
        <Moment
          {...to}
          problem={input.isReversed ? "This must be later than “Received from”." : null}
        />
        <div class="actions">
          <button>Filter</button>
          {isUsed && <a href="/signals">Clear</a>}
        </div>
      </form>
    </details>
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

function Moment({
  name,
  label,
  value = "",
  problem = null,
}: {
  name: string;
  label: string;
  value: string | undefined;
  problem?: string | null;
}): VNode {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        type="datetime-local"
        step="1"
        value={value}
        autocomplete="off"
        aria-invalid={problem !== null || undefined}
        aria-describedby={problem === null ? undefined : `${name}-problem`}
      />
      {problem !== null && (
        <p class="hint" id={`${name}-problem`} role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

function Found({ listing }: Listed): VNode {
  const { input, found, isLive } = listing;
  const { signals, newer, older, searchedTo } = found;
  return (
    <>
      <div class="actions">
        <QuietLink to={pathWith("/signals", input)}>{isLive ? "Refresh" : "Newest"}</QuietLink>
        {isLive && <LiveStatus />}
      </div>
      {signals.length === 0 && <Empty listing={listing} />}
      <SignalTable listing={listing} />
      {searchedTo !== null && (
        <p class="notice">
          Searched as far as <Time at={searchedTo.received_at} />. There may be more.
        </p>
      )}
      <Pager
        label="Pages of signals"
        newer={newer === null ? null : pathWith("/signals", input, { after: newer })}
        older={olderPath(listing)}
        olderName={searchedTo === null ? "Older" : "Search older ones"}
        isOlderHidden={older === null}
      />
      <Export input={input} />
    </>
  );
}

/** On the first page also when there are none: the script shows it when rows move down to it. */
function olderPath({ input, found: { older }, isLive }: SignalListing): string | null {
  if (older !== null) return pathWith("/signals", input, { before: older });
  return isLive ? pathWith("/signals", input) : null;
}

function Empty({ listing: { input, found, isLive } }: Listed): VNode {
  const isFiltered = Object.keys(input.typed).length > 0;
  return (
    <div class="empty" id="no-signals">
      {isFiltered || !isLive ? (
        <p>No signals match this filter{found.searchedTo === null ? "" : " so far"}.</p>
      ) : (
        <>
          <h2>No signal yet</h2>
          <p>
            <a href="/start">Send the first one</a>: it appears here as soon as it is stored.
          </p>
        </>
      )}
    </div>
  );
}

function Export({ input }: { input: FilterInput }): VNode {
  const path = (format: string) => pathWith("/signals/export", input, { format });
  return (
    <details>
      <summary>Export</summary>
      <p>
        Exports the signals that match the filter, newest first, at most{" "}
        {EXPORT_ROWS_MAX.toLocaleString("en")}; for more, narrow the time range. The download stops
        after {EXPORT_MINUTES_MAX} minutes, if your browser reads nothing for 30 seconds, or when
        you are signed out. In the CSV file a text that a spreadsheet could take for a formula has a{" "}
        <code>'</code> before it; NDJSON has every text as it was sent.
      </p>
      {/* Not "download": a browser would not show the page of a refusal. */}
      <p class="actions">
        <QuietLink to={path("csv")}>CSV</QuietLink>
        <QuietLink to={path("ndjson")}>NDJSON</QuietLink>
      </p>
    </details>
  );
}

function SignalTable({ listing: { input, found, newestId, isLive, now } }: Listed): VNode {
  return (
    <Table
      caption="Signals, newest first"
      columns={columns}
      id="signals"
      hidden={found.signals.length === 0}
      data-newer={isLive ? pathWith("/signals/newer", input) : undefined}
    >
      <SignalRows signals={found.signals} newestId={newestId} isCut={false} now={now} />
    </Table>
  );
}

/** The script asks for these, too. `isCut`: there are more between these and the rows that it has. */
export function SignalRows({
  signals,
  newestId,
  isCut,
  now,
}: {
  signals: readonly StoredSignal[];
  newestId: string;
  isCut: boolean;
  now: number;
}): VNode {
  return (
    <tbody data-newest={newestId} data-cut={isCut ? "" : undefined}>
      {signals.map((signal) => (
        <SignalRow signal={signal} now={now} />
      ))}
    </tbody>
  );
}

function SignalRow({ signal, now }: { signal: StoredSignal; now: number }): VNode {
  const { id, symbol, side, direction, price, quantity, key_id, key_label, key_last4 } = signal;
  const cells = [
    <Clock at={signal.received_at} now={now} />,
    <bdi title={titleOf(symbol)}>{shorten(symbol)}</bdi>,
    direction === null ? side : `${side}, ${direction}`,
    price?.toString() ?? <None />,
    quantity?.toString() ?? <None />,
    signal.source,
    signal.type,
    <KeyLink id={key_id} label={key_label} last4={key_last4} />,
  ];
  return <Row columns={columns} cells={cells} id={id} to={`/signals/${id}`} />;
}

/** The whole text of one that is shortened, unless it is too long for a page with many. */
function titleOf(text: string): string | undefined {
  return shorten(text) !== text && text.length <= 75 ? text : undefined;
}

/** `back`: the path that the member came from. */
export function ExportRefusedPage({
  visit,
  problem,
  back,
}: {
  visit: MemberVisit;
  problem: string;
  back: string;
}): VNode {
  return (
    <Layout title="Too many exports" visit={visit} place="/signals">
      <Problem>{problem}</Problem>
      <p>
        <a href={back}>Back to the signals</a>
      </p>
    </Layout>
  );
}
