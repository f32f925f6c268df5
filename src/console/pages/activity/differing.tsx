/** `/activity/differing`: which signals have duplicates that differ, since when, by which key, in which fields. */
import { DIFFERING_KEPT, type KeyRepeats } from "../../../domain/activity/activity.ts";
import type { ApiKey } from "../../../domain/key/key.ts";
import { isUlid } from "../../../domain/signal/id.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import { linkTo } from "../../server/links.ts";
import { forMembers, type Route } from "../../server/routes.ts";
import { KeyLink, None, Pager } from "../../ui/components.tsx";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import { plural } from "../../../lib/text/words.ts";
import { shorten } from "../../ui/words.ts";
import { findKey } from "../keys/key-list.ts";

const PATH = "/activity/differing";
const PAGE = 25;

interface Listed extends KeyRepeats {
  readonly signal: StoredSignal;
  readonly apiKey: ApiKey | null;
}

const columns: readonly Column<Listed>[] = [
  {
    name: "Signal",
    cell: ({ signal: { symbol, client_signal_id } }) => (
      <>
        <bdi>{shorten(symbol)}</bdi> <bdi class="mono soft">{shorten(client_signal_id ?? "")}</bdi>
      </>
    ),
    phone: "main",
    isName: true,
  },
  { name: "Different fields", cell: ({ differs }) => differs.join(", "), phone: "more" },
  {
    name: "Duplicates",
    cell: ({ differing }) => plural(differing, "duplicate"),
    phone: "main end",
    isNumber: true,
  },
  { name: "Latest", cell: ({ differedAt }) => <Past at={differedAt} />, phone: "more" },
  {
    name: "Sent with",
    cell: ({ apiKey }) => (apiKey === null ? <None /> : <KeyLink {...apiKey} />),
    phone: "more",
  },
];

export const differingRoutes: readonly Route[] = [
  forMembers.page(PATH, async (services, visit) => {
    const { deskId } = visit.member;
    const before = readCursor(visit.url.searchParams.get("before") ?? "");
    const found = await services.activity.differing({ deskId, before, limit: PAGE + 1 });
    const last = found.length > PAGE ? found[PAGE - 1] : undefined;
    const listed = found.slice(0, PAGE).map(async (one) => {
      const signal = await services.signals.get(deskId, one.signalId);
      return signal === null
        ? [] // Removed by a restore.
        : [{ ...one, signal, apiKey: await findKey(services, visit, one.keyId) }];
    });
    return (
      <Layout title="Duplicates that differ" up={{ path: "/activity", name: "Activity" }}>
        <p>
          A bot sent a <code>client_signal_id</code> again, with other content. The signal stays as
          it was first sent; the later content is not stored. Usually the bot uses one id for two
          signals: give each signal an id of its own.
        </p>
        <List
          caption="Signals with duplicates that differ, latest first"
          columns={columns}
          items={(await Promise.all(listed)).flat()}
          to={({ signalId }) => `${PATH}/${signalId}`}
          empty={
            <div class="empty">
              <h2>{before === null ? "No duplicate differs" : "There are no older ones"}</h2>
              <p>They appear here within seconds.</p>
            </div>
          }
        />
        <Pager
          label="Pages of duplicates"
          newest={before === null ? null : PATH}
          older={last === undefined ? null : linkTo(PATH, { before: cursorOf(last) })}
        />
        <p class="hint">
          Your desk's latest {DIFFERING_KEPT.toLocaleString("en")} are kept, each signal with each
          key as one.
        </p>
      </Layout>
    );
  }),
];

type Cursor = Pick<KeyRepeats, "differedAt" | "signalId" | "keyId">;

function cursorOf({ differedAt, signalId, keyId }: Cursor): string {
  return `${differedAt}-${signalId}-${keyId}`;
}

/** Null for an invalid cursor: the newest page. */
function readCursor(text: string): Cursor | null {
  const [at = "", signalId = "", keyId = ""] = text.split("-");
  const isValid = /^\d{1,15}$/.test(at) && isUlid(signalId) && isUlid(keyId);
  return isValid ? { differedAt: Number(at), signalId, keyId } : null;
}
