/** Desks, keys, members, passkeys, notices and the audit, over the port of an engine. */
import { audit } from "./audit.ts";
import { desks } from "./desks.ts";
import { keys } from "./keys.ts";
import { members } from "./members.ts";
import { deliveries, troubles } from "./notices/deliveries.ts";
import { places } from "./notices/places.ts";
import { watching } from "./notices/watched.ts";
import { passkeys } from "./passkeys.ts";
import type { Sql } from "./sql.ts";

export type Records = ReturnType<typeof records>;

export function records(sql: Sql) {
  return {
    registry: { ...desks(sql), ...keys(sql) },
    members: members(sql),
    passkeys: passkeys(sql),
    audit: audit(sql),
    notices: { ...places(sql), ...deliveries(sql), ...troubles(sql), ...watching(sql) },
  };
}
