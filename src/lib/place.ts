/** Where data is: in a folder, or in a database that is named by its URL. */
import { resolve } from "node:path";

/** Whether data is in a database that is named by its URL, and not in a folder. */
export function isStoreUrl(where: string): boolean {
  return /^postgres(ql)?:\/\//.test(where);
}

/** For messages: the hosts and the database, never the user or the password; a folder as it is. */
export function placeName(where: string): string {
  const [, hosts, database = ""] =
    /^postgres(?:ql)?:\/\/(?:[^/]*@)?([^/?]+)(\/[^?]*)?/.exec(where) ?? [];
  return hosts === undefined ? resolve(where) : `postgres://${hosts}${database}`;
}
