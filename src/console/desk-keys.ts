/** The keys of the desk that a member is of. */
import type { ApiKey } from "../domain/key.ts";
import type { ConsoleServices } from "./services.ts";
import type { MemberVisit } from "./visit.ts";

/** Newest first, as pages show them. */
export function deskKeys({ registryOf }: ConsoleServices, { member }: MemberVisit): ApiKey[] {
  return registryOf(member.memberId).listKeys(member.desk).toReversed();
}
