/** Where data is: in a folder, or in a database that is named by its URL. */
import { resolve } from "node:path";
import { hostsOf, parseStoreUrl } from "./store-url.ts";

/** Whether data is in a database that is named by its URL, and not in a folder. */
export function isStoreUrl(where: string): boolean {
  return /^postgres(ql)?:\/\//.test(where);
}

/** For messages: the hosts and the database, never the user or the password; a folder as it is. */
export function placeName(where: string): string {
  if (!isStoreUrl(where)) return resolve(where);
  return `postgres://${hostsOf(where)}/${encodeURIComponent(parseStoreUrl(where).database)}`;
}
