/** The first page after signing in: is it working? */
import type { ComponentChildren, VNode } from "preact";
import type { Bucket, Rejects } from "../../domain/activity.ts";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import { ButtonLink, None } from "../ui/components.tsx";
import { Layout } from "../ui/layout.tsx";
import { LiveParts, LiveStatus } from "../ui/live.tsx";
import { Chart, sumOf } from "../ui/sparkline.tsx";
import { Past } from "../ui/times.tsx";
import { counted, shorten } from "../ui/words.ts";
import { assets } from "../web/assets.ts";
import type { MemberVisit } from "../web/visit.ts";
import { type Attention, KeysToSee, RejectReasons } from "./attention.tsx";
import type { LastHour } from "./last-hour.ts";
import { deskState, usually } from "./state.ts";

export interface HomeAnswer extends Attention {
  readonly newest: StoredSignal | null;
  readonly lastHour: LastHour;
  /** The hours of the last day with anything in them. */
  readonly lastDay: readonly Bucket[];
}

export function HomePage({ visit, answer }: { visit: MemberVisit; answer: HomeAnswer }): VNode {
  return (
    <Layout title="Home" visit={visit} actions={<LiveStatus />} scripts={[assets.live.path]}>
      <LiveParts everyMs={5_000}>
        <HomeParts {...answer} />
      </LiveParts>
    </Layout>
  );
}

function HomeParts(answer: HomeAnswer): VNode {
  const { newest, lastHour, now } = answer;
  const { tone, headline } = deskState(newest?.received_at ?? null, lastHour, now);
  return (
    <div class="home">
      <div data-part="state" aria-live="polite">
        <div class={`state ${tone}`}>
          <h2>{headline}</h2>
          {tone === "bad" ? (
            <ButtonLink to={pathOfReason(answer.reasons[0])}>See why</ButtonLink>
          ) : (
            newest === null && <ButtonLink to="/start">Open the set-up guide</ButtonLink>
          )}
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

function pathOfReason(reason: Rejects | undefined): string {
  return reason === undefined ? "/activity" : `/activity/rejects/${reason.id}`;
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
        hint={duplicates > 0 && `and ${counted(duplicates, "duplicate")}`}
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
