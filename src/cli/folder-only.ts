/** Refuses for PostgreSQL what is for a database in a data folder. */
import { UsageError } from "../lib/errors.ts";
import { isStoreUrl, placeName } from "../lib/place.ts";

/** `what`: the subject of a sentence. `where`: as `store/open.ts` takes it. Throws `UsageError`. */
export function refuseStore(what: string, where: string): void {
  if (!isStoreUrl(where)) return;
  throw new UsageError(
    `${what} is for a database in a data folder: back up ${placeName(where)} with PostgreSQL's own tools: pg_dump, or pgBackRest or Barman for point-in-time recovery (PITR).`,
  );
}
