/** `/`: whether the desk's signals arrive, and what needs attention. */
import { REJECT_REASONS_KEPT } from "../../domain/activity.ts";
import { newestSignal } from "../../domain/signal-chunks.ts";
import { lastDayFrom } from "../keys/key-activity.ts";
import { expiringKeys, keysStillInUse, readUse } from "../keys/key-list.ts";
import { seeOther } from "../web/responses.ts";
import { forMembers, type Route } from "../web/routes.ts";
import type { ConsoleServices } from "../web/services.ts";
import type { MemberVisit } from "../web/visit.ts";
import { readLastHour } from "./last-hour.ts";
import { type HomeAnswer, HomePage } from "./page.tsx";

const REASONS_SHOWN = 5;
/** Of each kind: expiring soon, and still in use. */
const KEYS_SHOWN = 5;

export const homeRoutes: readonly Route[] = [
  forMembers.page("/", async (services, visit) => {
    const answer = await readAnswer(services, visit);
    if (answer.newest === null && (await isWithoutKeys(services, visit))) return seeOther("/start");
    return <HomePage visit={visit} answer={answer} />;
  }),
];

async function isWithoutKeys({ registry }: ConsoleServices, { member }: MemberVisit) {
  const one = { desk: member.desk, state: "active", scope: "send", limit: 1 } as const;
  return (await registry.pageKeys(one)).length === 0;
}

async function readAnswer(services: ConsoleServices, visit: MemberVisit): Promise<HomeAnswer> {
  const { activity, signals } = services;
  const { member, now } = visit;
  const owner = { deskId: member.deskId, keyId: null };
  const from = lastDayFrom(now);
  const query = { deskId: member.deskId, from, limit: REJECT_REASONS_KEPT, requestsMax: 0 };
  const reasons = [...(await activity.rejects(query))];
  const expiring = await expiringKeys(services, visit);
  const ended = await keysStillInUse(services, visit);
  return {
    newest: await newestSignal(signals, member.deskId),
    lastHour: await readLastHour(activity, owner, now),
    lastDay: await activity.buckets(owner, "hour", from),
    reasons: reasons.toSorted((one, other) => other.count - one.count).slice(0, REASONS_SHOWN),
    expiring: expiring.slice(0, KEYS_SHOWN),
    stillInUse: await readUse(services, visit, ended.slice(0, KEYS_SHOWN), expiring),
    now,
  };
}
