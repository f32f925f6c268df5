/** The desk's signals, newest first. */
import type { VNode } from "preact";
import { type ApiKey, redactKeys } from "../../../domain/key/key.ts";
import type { SignalList } from "../../../domain/signal/stored-signal.ts";
import { RejectedNotice } from "../activity/rejected.tsx";
import { Pager, Problem } from "../../ui/components.tsx";
import { Layout } from "../../ui/layout.tsx";
import { LiveStatus } from "../../ui/live.tsx";
import { Time } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";
import { assets } from "../../server/assets.ts";
import { describeProblems, type FilterInput, pathWith } from "./filter.ts";
import type { ListedSignal } from "./listing.ts";
import { SignalTable } from "./signal-table.tsx";
import { SignalToolbar } from "./toolbar.tsx";

interface SignalPage {
  /** Newest first. */
  readonly signals: readonly ListedSignal[];
  /** The `before` of the next page; null: this is the last. */
  readonly older: string | null;
  readonly searchedTo: SignalList["searchedTo"];
  /** How much of the search is done: 0 to 1. */
  readonly done: number;
}

export interface SignalListing {
  readonly input: FilterInput;
  /** The id that was searched for; null: none was. */
  readonly find: string | null;
  readonly found: SignalPage;
  /** The newest that the page can know of. */
  readonly newestId: string;
  /** The page with the newest matches. */
  readonly isFirst: boolean;
  /** New signals appear on top of it: it is the first page, and its filter ends in the future. */
  readonly isLive: boolean;
  /** To choose from. */
  readonly keys: readonly ApiKey[];
  /** To suggest. */
  readonly symbols: readonly string[];
  /** Requests in the last 24 hours, of a desk without signals. */
  readonly rejected: number;
}

export function SignalListPage(listing: SignalListing): VNode {
  const { input, find, found, isLive } = listing;
  return (
    <Layout
      title="Signals"
      actions={isLive && <LiveStatus />}
      scripts={[assets.localTimes.path, assets.live.path, assets.signals.path, assets.search.path]}
    >
      <SignalToolbar {...listing} />
      {find !== null && found.signals.length === 0 && (
        <Problem>
          No signal of your desk has this <code>id</code> or <code>client_signal_id</code>. If your
          bot got an error, see the <a href="/activity#rejects">rejected requests</a>.{" "}
          <SymbolLink text={find.trim()} />
        </Problem>
      )}
      {input.problems.length > 0 ? (
        <Problem>Nothing was searched: {describeProblems(input.problems)}.</Problem>
      ) : (
        <Found {...listing} />
      )}
    </Layout>
  );
}

function SymbolLink({ text }: { text: string }): VNode | null {
  // A key that was pasted by mistake is not repeated.
  if (text === "" || redactKeys(text) !== text) return null;
  return (
    <a href={pathWith("/signals", { typed: { symbol: text } })}>
      Signals whose symbol contains <bdi>{shorten(text)}</bdi>
    </a>
  );
}

function Found(listing: SignalListing): VNode {
  const { input, find, found, newestId, isFirst, isLive } = listing;
  const { signals, older, searchedTo, done } = found;
  const newerPath = isLive ? pathWith("/signals/newer", input) : undefined;
  return (
    <>
      {signals.length === 0 && find === null && <Empty {...listing} />}
      <div id="signal-list">
        <button type="button" class="small" id="show-new" hidden />
        <SignalTable signals={signals} newestId={newestId} newerPath={newerPath} />
      </div>
      {searchedTo !== null && (
        <p class="notice" id="searched">
          <span>
            Searched as far as <Time at={searchedTo.received_at} />. There may be more.
          </span>{" "}
          <progress value={done} aria-label="Searched" />{" "}
          {/* The script continues the search and shows it. */}
          <button type="button" class="quiet small" hidden>
            Stop
          </button>
        </p>
      )}
      <Pager
        label="Pages of signals"
        newest={isFirst || find !== null ? null : pathWith("/signals", input)}
        older={olderPath(listing)}
        olderName={searchedTo === null ? "Older" : "Search older ones"}
        isOlderHidden={older === null}
      />
    </>
  );
}

/** On the first page also when there are none: the script shows it when rows move down to it. */
function olderPath({ input, found: { older }, isLive }: SignalListing): string | null {
  if (older !== null) return pathWith("/signals", input, { before: older });
  return isLive ? pathWith("/signals", input) : null;
}

function Empty(listing: SignalListing): VNode {
  const { input, isLive, rejected } = listing;
  const isFiltered = Object.keys(input.typed).length > 0;
  return (
    <div class="empty" id="no-signals">
      {isFiltered || !isLive ? (
        <>
          <h2>{headingOf(listing)}</h2>
          {isLive && <p>Signals that match the filter appear here as soon as they are stored.</p>}
        </>
      ) : (
        <>
          <h2>No signals yet</h2>
          <p>
            <a href="/start">Send the first one</a>: it appears here as soon as it is stored.
          </p>
          <RejectedNotice count={rejected} />
        </>
      )}
    </div>
  );
}

function headingOf({ found, isFirst, isLive }: SignalListing): string {
  if (found.searchedTo !== null) return "No matches so far";
  if (isLive) return "No matches yet";
  return isFirst ? "No matches" : "No older matches";
}

/** `back`: the path that the member came from. */
export function ExportRefusedPage({ problem, back }: { problem: string; back: string }): VNode {
  return (
    <Layout title="Too many exports" up={{ path: back, name: "Signals" }}>
      <Problem>{problem}</Problem>
    </Layout>
  );
}
