/** The first page after signing in: is it working? */
import type { ComponentChildren, VNode } from "preact";
import type { Bucket, Rejects } from "../../domain/activity.ts";
import { type ApiKey, EXPIRING_SOON_MS } from "../../domain/key.ts";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import { ReasonInBrief, StatusTag } from "../activity/rejects-list.tsx";
import { type LateUse, requests } from "../keys/key-activity.ts";
import { StateTag, StillInUseTag } from "../keys/state-tag.tsx";
import { ButtonLink, KeyName, None } from "../ui/components.tsx";
import { Layout } from "../ui/layout.tsx";
import { LiveStatus } from "../ui/live-status.tsx";
import { Chart, sumOf } from "../ui/sparkline.tsx";
import { type Column, Row, Table } from "../ui/table.tsx";
import { Past, PastOrFuture } from "../ui/times.tsx";
import { newestAgo, shorten } from "../ui/words.ts";
import { assets } from "../web/assets.ts";
import type { MemberVisit } from "../web/visit.ts";
import type { LastHour } from "./last-hour.ts";
import { deskState, usually } from "./state.ts";

/** Of those that expire soon. */
const KEYS_SHOWN = 5;

/** An ended key that is still sent. */
export interface KeyStillInUse {
  readonly apiKey: ApiKey;
  readonly late: LateUse;
}

export interface HomeAnswer {
  readonly newest: StoredSignal | null;
  readonly lastHour: LastHour;
  /** The hours of the last day with anything in them. */
  readonly lastDay: readonly Bucket[];
  /** The most frequent reasons for rejects of the last day, and how many more there are. */
  readonly reasons: readonly Rejects[];
  readonly moreReasons: number;
  readonly expiring: readonly ApiKey[];
  readonly stillInUse: readonly KeyStillInUse[];
  readonly now: number;
}

export function HomePage({ visit, answer }: { visit: MemberVisit; answer: HomeAnswer }): VNode {
  return (
    <Layout
      title="Home"
      visit={visit}
      place="/"
      actions={<LiveStatus />}
      scripts={[assets.live.path, assets.home.path]}
    >
      <HomeParts {...answer} />
    </Layout>
  );
}

/** The script asks for these, too, and replaces each `data-part`. */
export function HomeParts(answer: HomeAnswer): VNode {
  const { newest, lastHour, now } = answer;
  const { tone, headline } = deskState(newest?.received_at ?? null, lastHour, now);
  return (
    <div class="home">
      <div data-part="state" aria-live="polite">
        <div class={`state ${tone}`}>
          <h2>{headline}</h2>
          {newest === null && <ButtonLink to="/start">Open the set-up guide</ButtonLink>}
        </div>
      </div>
      <div data-part="figures">
        <Figures {...answer} />
      </div>
      <section data-part="chart">
        <LastDay {...answer} />
      </section>
      <div class="pair">
        <section data-part="rejects">
          <RejectReasons {...answer} />
        </section>
        <section data-part="keys">
          <KeysToSee {...answer} />
        </section>
      </div>
    </div>
  );
}

function Figures({ newest, lastHour, lastDay, now }: HomeAnswer): VNode {
  const { stored, usual } = lastHour;
  const duplicates = sumOf(lastDay, "duplicate");
  const rejected = sumOf(lastDay, "rejected");
  return (
    <dl class="tiles">
      <Tile
        name="Latest signal"
        hint={newest !== null && <Past at={newest.received_at} now={now} />}
      >
        {newest === null ? <None /> : <SignalLink {...newest} />}
      </Tile>
      <Tile name="Stored, last hour" hint={usual !== null && usually(usual)}>
        {stored.toLocaleString("en")}
      </Tile>
      <Tile
        name="Stored, last 24 hours"
        hint={duplicates > 0 && `and ${duplicates.toLocaleString("en")} duplicate`}
      >
        {sumOf(lastDay, "stored").toLocaleString("en")}
      </Tile>
      <Tile name="Rejected, last 24 hours" hint={rejected > 0 && shareOf(rejected, lastDay)}>
        {rejected.toLocaleString("en")}
      </Tile>
    </dl>
  );
}

function SignalLink({ id, symbol }: StoredSignal): VNode {
  return (
    <a href={`/signals/${id}`}>
      <bdi>{shorten(symbol)}</bdi>
    </a>
  );
}

function Tile({
  name,
  hint,
  children,
}: {
  name: string;
  hint: ComponentChildren;
  children: ComponentChildren;
}): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
      <dd class="hint">{hint === false ? "\u00a0" : hint}</dd>
    </div>
  );
}

const percent = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 2 });

function shareOf(rejected: number, lastDay: readonly Bucket[]): string {
  const all = rejected + sumOf(lastDay, "stored") + sumOf(lastDay, "duplicate");
  return `${percent.format(rejected / all)} of all requests`;
}

function LastDay({ lastDay, now }: HomeAnswer): VNode {
  return (
    <>
      <div class="section-head">
        <h2>Requests per hour</h2>
        <a href="/activity?per=hour">Activity</a>
      </div>
      <Chart
        buckets={lastDay}
        width="hour"
        count={24}
        now={now}
        label="Requests per hour of the last 24 hours"
        ends={["23 h ago", "this hour"]}
      />
    </>
  );
}

const reasonColumns: readonly Column[] = [
  { name: "Reason", phone: "main" },
  { name: "Latest", phone: "more" },
  { name: "Requests", phone: "more end", isNumber: true, isLabelled: true },
];

function RejectReasons({ reasons, moreReasons, now }: HomeAnswer): VNode {
  return (
    <>
      <div class="section-head">
        <h2>Rejected in the last 24 hours</h2>
        {moreReasons > 0 && (
          <a href="/activity#rejects">
            {moreReasons.toLocaleString("en")} more {moreReasons === 1 ? "reason" : "reasons"}
          </a>
        )}
      </div>
      {reasons.length === 0 ? (
        <p class="soft">Nothing was rejected.</p>
      ) : (
        <Table
          caption="Reasons for rejected requests, the most frequent first"
          columns={reasonColumns}
        >
          <tbody>
            {reasons.map((rejects) => (
              <Row
                columns={reasonColumns}
                cells={[
                  <>
                    <StatusTag {...rejects} /> <ReasonInBrief {...rejects} />
                  </>,
                  <Past at={rejects.lastAt} now={now} />,
                  rejects.count.toLocaleString("en"),
                ]}
                to={`/activity/rejects/${rejects.id}`}
              />
            ))}
          </tbody>
        </Table>
      )}
    </>
  );
}

const keyColumns: readonly Column[] = [
  { name: "Key", phone: "main" },
  { name: "State", phone: "main end" },
  { name: "Why", phone: "more" },
];

const SOON = `${EXPIRING_SOON_MS / (24 * 60 * 60 * 1_000)} days`;

function KeysToSee({ expiring, stillInUse, now }: HomeAnswer): VNode {
  return (
    <>
      <div class="section-head">
        <h2>Keys that need attention</h2>
        <a href="/keys">All keys</a>
      </div>
      {expiring.length + stillInUse.length === 0 ? (
        <p class="soft">{`None: no key expires within ${SOON}, and no ended key is still in use.`}</p>
      ) : (
        <Table caption="Keys that need attention" columns={keyColumns}>
          <tbody>
            {stillInUse.map(({ apiKey, late }) => (
              <KeyRow apiKey={apiKey} tag={<StillInUseTag />} why={describeUse(late, now)} />
            ))}
            {expiring.slice(0, KEYS_SHOWN).map((apiKey) => (
              <KeyRow
                apiKey={apiKey}
                tag={<StateTag apiKey={apiKey} isExpiring now={now} />}
                why={
                  <>
                    Expires <PastOrFuture at={apiKey.expires_at} now={now} />, without a successor
                  </>
                }
              />
            ))}
          </tbody>
        </Table>
      )}
    </>
  );
}

function describeUse({ count, lastAt }: LateUse, now: number): string {
  return `${requests(count)} in the last 24 hours, ${newestAgo(count, lastAt, now)}`;
}

function KeyRow({
  apiKey,
  tag,
  why,
}: {
  apiKey: ApiKey;
  tag: VNode;
  why: ComponentChildren;
}): VNode {
  const label = apiKey.label === null ? null : shorten(apiKey.label);
  const cells = [<KeyName {...apiKey} label={label} />, tag, why];
  return <Row columns={keyColumns} cells={cells} to={`/keys/${apiKey.id}`} isNamed />;
}
