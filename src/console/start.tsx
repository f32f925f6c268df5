/** @jsxImportSource preact */
/** `/start`: what a new desk has to do, and where the console begins. */
import { keyState } from "../domain/key.ts";
import { everySignal } from "../domain/stored-signal.ts";
import { type Progress, ProgressSteps, StartPage } from "./pages/start.tsx";
import { page, seeOther } from "./responses.ts";
import type { ConsoleServices } from "./services.ts";
import { randomToken } from "./sessions.ts";
import type { MemberVisit, Route } from "./visit.ts";

export function startRoutes(services: ConsoleServices): Route[] {
  const { publicUrl } = services;
  return [
    at("/", (visit) =>
      seeOther(readProgress(services, visit).signal === null ? "/start" : "/signals"),
    ),
    at("/start", (visit) => {
      const progress = readProgress(services, visit);
      const secret = randomToken();
      return page(<StartPage visit={visit} {...{ progress, publicUrl, secret }} />);
    }),
    at("/start/state", (visit) => {
      const progress = readProgress(services, visit);
      return page(<ProgressSteps progress={progress} now={visit.now} />);
    }),
  ];
}

function at(path: string, handle: (visit: MemberVisit) => Response): Route {
  return { method: "GET", path, access: "member", handle };
}

function readProgress(
  { registryOf, signals }: ConsoleServices,
  { member, now }: MemberVisit,
): Progress {
  const keys = registryOf(member.memberId).listKeys(member.desk).toReversed();
  const newest = signals.page({ deskId: member.deskId, filter: everySignal, limit: 1 });
  return {
    key: keys.find((key) => keyState(key, now) === "active") ?? null,
    signal: newest.signals[0] ?? null,
  };
}
