/** `/`, the first page after signing in: whether the desk's signals arrive, and what needs attention. */
import type { ComponentChildren, VNode } from "preact";
import {
  type Bucket,
  type BucketSpan,
  type DifferingTotal,
  REJECT_REASONS_KEPT,
  type Rejects,
} from "../../../domain/activity/activity.ts";
import { latelyFrom, usually, usualRate } from "../../../domain/activity/usual.ts";
import type { SilenceRule } from "../../../domain/desk/silence.ts";
import { newestSignal } from "../../../domain/signal/chunks.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import { Chart } from "../../ui/chart.tsx";
import { Reason } from "../activity/rejects-list.tsx";
import { ButtonLink, None } from "../../ui/components.tsx";
import { useVisit } from "../../ui/context.ts";
import { Layout } from "../../ui/layout.tsx";
import { LiveParts, LiveStatus, StateBanner } from "../../ui/live.tsx";
import { sumOf } from "../../ui/sparkline.tsx";
import { Past } from "../../ui/times.tsx";
import { plural } from "../../../lib/text/words.ts";
import { shorten } from "../../ui/words.ts";
import { assets } from "../../server/assets.ts";
import { seeOther } from "../../server/responses.ts";
import { forMembers, type Route } from "../../server/routes.ts";
import type { ConsoleServices } from "../../server/services.ts";
import type { MemberVisit } from "../../server/visit.ts";
import { expiringKeys, keysStillInUse, lastDayFrom, readUse } from "../keys/key-list.ts";
import { type Attention, KeysToSee, RejectReasons } from "./attention.tsx";
import { type LastHour, readLastHour } from "./last-hour.ts";
import { deskState } from "./state.ts";

const REASONS_SHOWN = 5;
/** Of each kind: expiring soon, rotated, and still in use. */
const KEYS_SHOWN = 5;

interface HomeAnswer extends Attention {
  readonly newest: StoredSignal | null;
  /** Why most of the requests were rejected lately; null: none was. */
  readonly mainReason: Rejects | null;
  readonly lastHour: LastHour;
  readonly silence: SilenceRule;
  /** The hours of the last day with anything in them. */
  readonly lastDay: readonly Bucket[];
  /** Of the last day; null: none. */
  readonly differing: DifferingTotal | null;
}

export const homeRoutes: readonly Route[] = [
  forMembers.page("/", async (services, visit) => {
    const answer = await readAnswer(services, visit);
    if (answer.newest === null && (await isWithoutKeys(services, visit))) return seeOther("/start");
    return (
      <Layout
        title="Home"
        actions={<LiveStatus />}
        state={<DeskState {...answer} />}
        scripts={[assets.live.path, assets.chart.path]}
      >
        <LiveParts everyMs={5_000}>
          <HomeParts {...answer} />
        </LiveParts>
      </Layout>
    );
  }),
];

async function isWithoutKeys({ registry }: ConsoleServices, { member }: MemberVisit) {
  const one = { desk: member.deskId, state: "active", scope: "send", limit: 1 } as const;
  return (await registry.pageKeys(one)).length === 0;
}

async function readAnswer(services: ConsoleServices, visit: MemberVisit): Promise<HomeAnswer> {
  const { activity, registry, signals } = services;
  const { now, member } = visit;
  const { deskId } = member;
  const lastDay = { width: "hour", from: lastDayFrom(now) } as const;
  const reasonsSince = async (since: BucketSpan) =>
    (await activity.rejects({ deskId, since, limit: REJECT_REASONS_KEPT })).toSorted(
      (one, other) => other.count - one.count,
    );
  const lately = await reasonsSince({ width: "minute", from: latelyFrom(now) });
  const expiring = await expiringKeys(services, visit);
  const rotated = await registry.rotatedKeysInUse(deskId);
  const ended = await keysStillInUse(services, visit);
  return {
    newest: await newestSignal(signals, deskId),
    lastHour: await readLastHour(activity, deskId, now),
    silence: await registry.silenceRule(deskId),
    lastDay: await activity.buckets({ deskId, keyIds: null, ...lastDay }),
    differing: await activity.differingTotal(deskId, lastDay.from),
    mainReason: lately[0] ?? null,
    reasons: (await reasonsSince(lastDay)).slice(0, REASONS_SHOWN),
    expiring: expiring.slice(0, KEYS_SHOWN),
    rotated: rotated.slice(0, KEYS_SHOWN),
    stillInUse: await readUse(services, visit, ended.slice(0, KEYS_SHOWN), expiring),
  };
}

function HomeParts(answer: HomeAnswer): VNode {
  return (
    <div class="home">
      <div data-part="figures">
        <Figures {...answer} />
        <DifferingNotice {...answer} />
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

function DeskState({ newest, lastHour, silence, mainReason, reasons }: HomeAnswer): VNode {
  const { now } = useVisit();
  const { isAboutRejects, ...state } = deskState(
    newest?.received_at ?? null,
    lastHour,
    silence,
    now,
  );
  const reason = mainReason ?? reasons[0];
  return (
    <StateBanner {...state}>
      {isAboutRejects === true ? (
        <>
          {reason !== undefined && (
            <p>
              Mostly: <Reason {...reason} />
            </p>
          )}
          <ButtonLink to={pathOfReason(reason)}>See why</ButtonLink>
        </>
      ) : (
        newest === null && <ButtonLink to="/start">Open the set-up guide</ButtonLink>
      )}
    </StateBanner>
  );
}

function pathOfReason(reason: Rejects | undefined): string {
  return reason === undefined ? "/activity" : `/activity/rejects/${reason.id}`;
}

function Figures({ newest, lastHour, lastDay }: HomeAnswer): VNode {
  const { now } = useVisit();
  const { stored, usual } = lastHour;
  const duplicates = sumOf(lastDay, "duplicate");
  const rejected = sumOf(lastDay, "rejected");
  const share = rejected / (rejected + duplicates + sumOf(lastDay, "stored"));
  return (
    <dl class="tiles">
      <Tile name="Latest signal" hint={newest !== null && <Past at={newest.received_at} />}>
        {newest === null ? <None /> : <SignalLink {...newest} />}
      </Tile>
      <Tile name="Stored, last hour" hint={usual !== null && usually(usualRate(usual, now))}>
        {stored.toLocaleString("en")}
      </Tile>
      <Tile
        name="Stored, last 24 hours"
        hint={duplicates > 0 && `and ${plural(duplicates, "duplicate")}`}
      >
        {sumOf(lastDay, "stored").toLocaleString("en")}
      </Tile>
      <Tile
        name="Rejected, last 24 hours"
        hint={rejected > 0 && `${percent.format(share)} of all requests`}
      >
        {rejected.toLocaleString("en")}
      </Tile>
    </dl>
  );
}

/** Bots that reuse an id lose signals, and their requests still get 200. */
function DifferingNotice({ differing }: HomeAnswer): VNode | null {
  if (differing === null) return null;
  return (
    <p class="notice warn">
      {plural(differing.count, "duplicate")} had other content than the stored signal and{" "}
      {differing.count === 1 ? "was" : "were"} not stored, the latest <Past at={differing.lastAt} />
      . <a href="/activity/differing">See which</a>
    </p>
  );
}

function SignalLink({ id, symbol }: StoredSignal): VNode {
  return (
    <a href={`/signals/${id}`}>
      <bdi>{shorten(symbol)}</bdi>
    </a>
  );
}

const percent = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 2 });

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

function LastDay({ lastDay }: HomeAnswer): VNode {
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
        label="Requests per hour of the last 24 hours"
      />
    </>
  );
}
