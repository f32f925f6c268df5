/** `/start`: what a new desk has to do. */
import { generateToken } from "../../domain/member.ts";
import { newestSignal } from "../../domain/signal-chunks.ts";
import { countRejected } from "../activity/rejected.tsx";
import { type Progress, ProgressSteps, StartPage } from "./page.tsx";
import { page } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { memberPage, type MemberVisit, type Route } from "../web/visit.ts";

export function startRoutes(services: ConsoleServices): Route[] {
  const { publicUrl } = services;
  return [
    memberPage("/start", async (visit) => {
      const progress = await readProgress(services, visit);
      const secret = generateToken();
      return page(<StartPage visit={visit} {...{ progress, publicUrl, secret }} />);
    }),
    memberPage("/start/state", async (visit) => {
      const progress = await readProgress(services, visit);
      return page(<ProgressSteps progress={progress} now={visit.now} />);
    }),
  ];
}

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
