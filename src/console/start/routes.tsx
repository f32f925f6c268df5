/** `/start`: what a new desk has to do. */
import { generateToken } from "../../domain/member.ts";
import { newestSignal } from "../../domain/signal-chunks.ts";
import { countRejected } from "../activity/rejected.tsx";
import { type Progress, StartPage } from "./page.tsx";
import { forMembers, type Route } from "../web/routes.ts";
import type { ConsoleServices } from "../web/services.ts";
import type { MemberVisit } from "../web/visit.ts";

export const startRoutes: readonly Route[] = [
  forMembers.page("/start", async (services, visit) => {
    const progress = await readProgress(services, visit);
    const { publicUrl } = services;
    return <StartPage {...{ visit, progress, publicUrl }} secret={generateToken()} />;
  }),
];

async function readProgress(services: ConsoleServices, visit: MemberVisit): Promise<Progress> {
  const { registry, signals } = services;
  const { desk, deskId } = visit.member;
  const [key = null] = await registry.pageKeys({ desk, state: "active", scope: "send", limit: 1 });
  return {
    key,
    signal: await newestSignal(signals, deskId),
    rejected: await countRejected(services, visit),
  };
}
