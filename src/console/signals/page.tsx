/** The desk's signals, newest first, and what leads to one. */
import type { VNode } from "preact";
import type { ApiKey } from "../../domain/key.ts";
import { redactKeys } from "../../domain/key.ts";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import type { SignalPage } from "./listing.ts";
import { assets } from "../web/assets.ts";
import { shorten } from "../ui/shorten.ts";
import { choices, type FilterInput, pathWith } from "./filter.ts";
import type { MemberVisit } from "../web/visit.ts";
import { KeySelect } from "../ui/key-select.tsx";
import { KeyName } from "../keys/page.tsx";
import { Layout, Problem, Time } from "../ui/layout.tsx";

/** In the file of an export. */
export const EXPORT_ROWS_MAX = 1_000_000;
/** An export that takes longer is cut. */
export const EXPORT_MINUTES_MAX = 15;

/** In UTF-16 units, as a text that is shortened still has it for a title. */
const TITLE_UNITS_MAX = 80;

export interface SignalListing {
  readonly input: FilterInput;
  /** As searched for, by id; null where nobody searched. */
  readonly find: string | null;
  readonly found: SignalPage;
  /** The newest that the page can know of. */
  readonly newestId: string;
  /** The first page: what arrives appears on top of it. */
  readonly isLive: boolean;
  readonly keys: readonly ApiKey[];
}

export function SignalListPage({
  visit,
  listing,
}: {
  visit: MemberVisit;
  listing: SignalListing;
}): VNode {
  const { input, find, keys } = listing;
  return (
    <Layout
      title="Signals"
      member={visit.member}
      csrfToken={visit.csrfToken}
      place="/signals"
      scripts={[assets.localTimes.path, assets.live.path, assets.signals.path]}
    >
      {find !== null && listing.found.signals.length === 0 && (
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
      {find !== null && listing.found.signals.length > 0 && (
        <SignalTable signals={listing.found.signals} newestId={listing.newestId} newerPath={null} />
      )}
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
  return (
    <details open={isUsed}>
      <summary>Filter</summary>
      <form class="filters" method="get" action="/signals">
        <div class="field">
          <label for="symbol">Symbol</label>
          <input id="symbol" name="symbol" value={typed.symbol ?? ""} autocomplete="off" />
        </div>
        <Choice name="source" label="Source" values={choices.source} chosen={typed.source} />
        <Choice name="type" label="Type" values={choices.type} chosen={typed.type} />
        <Choice name="side" label="Side" values={choices.side} chosen={typed.side} />
        <div class="field">
          <label for="key">Key</label>
          <KeySelect keys={keys} chosen={typed.key} nobody="any" />
        </div>
        <Moment name="from" label="Received from (UTC)" value={typed.from} />
        <Moment
          name="to"
          label="Received before (UTC)"
          value={typed.to}
          problem={input.isReversed ? "This is before “Received from”." : null}
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
  name,
  label,
  values,
  chosen,
}: {
  name: string;
  label: string;
  values: readonly string[];
  chosen: string | undefined;
}): VNode {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <select id={name} name={name}>
        <option value="">any</option>
        {values.map((value) => (
          <option value={value} selected={value === chosen}>
            {value}
          </option>
        ))}
      </select>
    </div>
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

function Found({ listing }: { listing: SignalListing }): VNode {
  const { input, found, newestId, isLive } = listing;
  const isEmpty = found.signals.length === 0;
  return (
    <>
      <div class="actions">
        <a class="button quiet" href={pathWith("/signals", input)}>
          {isLive ? "Refresh" : "Newest"}
        </a>
        {isLive && (
          <button type="button" class="quiet" id="pause" hidden>
            Pause
          </button>
        )}
        {isLive && <span id="news" role="status" />}
      </div>
      {isEmpty && <Empty listing={listing} />}
      <SignalTable
        signals={found.signals}
        newestId={newestId}
        newerPath={isLive ? pathWith("/signals/newer", input) : null}
      />
      {found.searchedTo !== null && (
        <p class="notice">
          Searched as far as <Time at={found.searchedTo.received_at} />. There may be more.
        </p>
      )}
      <Ways listing={listing} />
      <Export input={input} />
    </>
  );
}

function Empty({ listing }: { listing: SignalListing }): VNode {
  const { input, found } = listing;
  const isFiltered = Object.keys(input.typed).length > 0;
  if (isFiltered || !listing.isLive) {
    return (
      <div class="empty" id="no-signals">
        <p>
          {found.searchedTo === null
            ? "No signals match this filter."
            : "No signals match this filter so far."}
        </p>
      </div>
    );
  }
  return (
    <div class="empty" id="no-signals">
      <h2>No signal yet</h2>
      <p>
        <a href="/start">Send the first one</a>: it appears here as soon as it is stored.
      </p>
    </div>
  );
}

/** The script shows "older" when rows move down to it. */
function Ways({ listing: { input, found, isLive } }: { listing: SignalListing }): VNode {
  const { newer, older, searchedTo } = found;
  const olderPath = pathWith("/signals", input, older === null ? {} : { before: older });
  return (
    <nav class="actions" aria-label="Pages of signals">
      {newer !== null && (
        <a
          class="button quiet"
          href={pathWith("/signals", input, { after: newer })}
          rel="prev"
          id="newer"
        >
          Newer
        </a>
      )}
      {(older !== null || isLive) && (
        <a class="button quiet" href={olderPath} rel="next" id="older" hidden={older === null}>
          {searchedTo === null ? "Older" : "Search older ones"}
        </a>
      )}
    </nav>
  );
}

function Export({ input }: { input: FilterInput }): VNode {
  const path = (format: string) => pathWith("/signals/export", input, { format });
  return (
    <details>
      <summary>Export</summary>
      <p>
        What the filter lets through, newest first, up to {EXPORT_ROWS_MAX.toLocaleString("en")}{" "}
        signals: narrow the time for more. An export is cut after {EXPORT_MINUTES_MAX} minutes,
        after 30 seconds in which your browser takes nothing, and when you are signed out. In the
        CSV file a text that a spreadsheet could take for a formula has a <code>'</code> before it;
        NDJSON has every text as it was sent.
      </p>
      {/* Not "download": a browser would keep the page of a refusal to itself. */}
      <p class="actions">
        <a class="button quiet" href={path("csv")}>
          CSV
        </a>
        <a class="button quiet" href={path("ndjson")}>
          NDJSON
        </a>
      </p>
    </details>
  );
}

function SignalTable({
  signals,
  newestId,
  newerPath,
}: {
  signals: readonly StoredSignal[];
  newestId: string;
  newerPath: string | null;
}): VNode {
  return (
    <div
      class="scroll"
      id="signals"
      hidden={signals.length === 0}
      data-newer={newerPath ?? undefined}
    >
      <table>
        <caption class="unseen">Signals, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Received</th>
            <th scope="col">Symbol</th>
            <th scope="col">Side</th>
            <th scope="col">Price</th>
            <th scope="col">Quantity</th>
            <th scope="col">Source</th>
            <th scope="col">Type</th>
            <th scope="col">Key</th>
          </tr>
        </thead>
        <SignalRows signals={signals} newestId={newestId} isCut={false} />
      </table>
    </div>
  );
}

/** Also what the script asks for. `isCut`: there are more between these and the ones that it has. */
export function SignalRows({
  signals,
  newestId,
  isCut,
}: {
  signals: readonly StoredSignal[];
  newestId: string;
  isCut: boolean;
}): VNode {
  return (
    <tbody data-newest={newestId} data-cut={isCut ? "" : undefined}>
      {signals.map((signal) => (
        <SignalRow signal={signal} />
      ))}
    </tbody>
  );
}

function SignalRow({ signal }: { signal: StoredSignal }): VNode {
  const { id, side, direction, key_label } = signal;
  const label = key_label === null ? null : shorten(key_label);
  return (
    <tr data-id={id}>
      <td data-label="Received">
        <a href={`/signals/${id}`}>
          <Time at={signal.received_at} />
        </a>
      </td>
      <td data-label="Symbol">
        <bdi title={titleOf(signal.symbol)}>{shorten(signal.symbol)}</bdi>
      </td>
      <td data-label="Side">{direction === null ? side : `${side}, ${direction}`}</td>
      <td data-label="Price">
        <Quantity value={signal.price} />
      </td>
      <td data-label="Quantity">
        <Quantity value={signal.quantity} />
      </td>
      <td data-label="Source">{signal.source}</td>
      <td data-label="Type">{signal.type}</td>
      <td data-label="Key">
        <a href={`/keys/${signal.key_id}`}>
          <KeyName label={label} last4={signal.key_last4} />
        </a>
      </td>
    </tr>
  );
}

/** What is shortened, where it is short enough for a page of many. */
function titleOf(text: string): string | undefined {
  return shorten(text) !== text && text.length <= TITLE_UNITS_MAX ? text : undefined;
}

function Quantity({ value }: { value: number | null }): VNode {
  return value === null ? <span class="none">none</span> : <>{String(value)}</>;
}
