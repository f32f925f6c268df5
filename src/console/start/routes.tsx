/** `/start`: what a new desk has to do, and where the console begins. */
import { everySignal } from "../../domain/stored-signal.ts";
import { type Progress, ProgressSteps, StartPage } from "./page.tsx";
import { page, seeOther } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { randomToken } from "../web/sessions.ts";
import { memberPage, type MemberVisit, type Route } from "../web/visit.ts";

export function startRoutes(services: ConsoleServices): Route[] {
  const { publicUrl } = services;
  return [
    memberPage("/", (visit) =>
      seeOther(readProgress(services, visit).signal === null ? "/start" : "/signals"),
    ),
    memberPage("/start", (visit) => {
      const progress = readProgress(services, visit);
      const secret = randomToken();
      return page(<StartPage visit={visit} {...{ progress, publicUrl, secret }} />);
    }),
    memberPage("/start/state", (visit) => {
      const progress = readProgress(services, visit);
      return page(<ProgressSteps progress={progress} now={visit.now} />);
    }),
  ];
}

function readProgress(services: ConsoleServices, visit: MemberVisit): Progress {
  const { member } = visit;
  const registry = services.registryOf(member.memberId);
  const [key = null] = registry.pageKeys({ desk: member.desk, state: "active", limit: 1 });
  const newest = services.signals.page({ deskId: member.deskId, filter: everySignal, limit: 1 });
  return {
    key,
    signal: newest.signals[0] ?? null,
  };
}
