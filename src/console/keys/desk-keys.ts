/** The keys of a member's desk, as pages show them: a few at a time, newest first. */
import type { ApiKey } from "../../domain/key.ts";
import type { ConsoleServices } from "../web/services.ts";
import type { MemberVisit } from "../web/visit.ts";

/** In a list to choose from: the page stays small. */
const ACTIVE_OFFERED = 200;
const ENDED_OFFERED = 50;

/** Null for an id that is unknown or another desk's. */
export async function findKey(
  { registry }: ConsoleServices,
  { member }: MemberVisit,
  id: string,
): Promise<ApiKey | null> {
  const key = await registry.findKey(id, { desk: member.desk });
  // Only the id's own spelling: the registry also finds it in lower case.
  return key?.id === id ? key : null;
}

/** To choose from: the newest of the active keys, then of those that have ended, and the chosen one. */
export async function offeredKeys(
  services: ConsoleServices,
  visit: MemberVisit,
  chosenId: string | undefined,
): Promise<ApiKey[]> {
  const { registry } = services;
  const { desk } = visit.member;
  const offered = [
    ...(await registry.pageKeys({ desk, state: "active", limit: ACTIVE_OFFERED })),
    ...(await registry.pageKeys({ desk, state: "ended", limit: ENDED_OFFERED })),
  ];
  if (chosenId === undefined || offered.some(({ id }) => id === chosenId)) return offered;
  const chosen = await findKey(services, visit, chosenId);
  return chosen === null ? offered : [...offered, chosen];
}
