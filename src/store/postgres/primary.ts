/**
 * Finds the primary among the hosts of a URL by asking all of them at once. postgres.js would try one after the other:
 * each host that does not answer costs its whole time-out, and an error of one, such as a standby that is starting,
 * counts as the answer of all.
 */
import type { Host, StoreUrl } from "../../lib/store-url.ts";
import { connect } from "./connect.ts";
import { hasCode, NoPrimaryError } from "./failures.ts";

interface Primary {
  readonly host: Host;
  /** The `synchronous_commit` to ask for. */
  readonly commit: "on" | "remote_apply";
  /** When it was started, which tells two names of one server from two servers. */
  readonly startedAt: string;
}

const ANSWER_MS_MAX = 3_000;
/** So long the others may say that they are primaries, too. */
const OTHERS_MS = 300;
/** Another time-out may be set for the role or the database. */
const SETTINGS = { application_name: "signalbox", statement_timeout: "0" };

/**
 * Rejects with the failure that says most; also if two servers say that they are the primary, because each server of ours
 * might then store in another one.
 */
export async function findPrimary(url: StoreUrl): Promise<Primary> {
  const asked = url.hosts.map((host) => ask(url, host));
  try {
    const found: Primary[] = [];
    for (const one of asked) void one.then((primary) => found.push(primary)).catch(() => {});
    const first = await Promise.any(asked);
    await Promise.race([Promise.allSettled(asked), Bun.sleep(OTHERS_MS)]);
    if (found.some(({ startedAt }) => startedAt !== first.startedAt)) {
      throw new NoPrimaryError("two of the hosts are primaries: fence or stop the one that is not");
    }
    return first;
  } catch (error) {
    throw error instanceof AggregateError ? chosen(error.errors) : error;
  }
}

async function ask(url: StoreUrl, host: Host): Promise<Primary> {
  const pg = connect(url, host, { max: 1, settings: SETTINGS });
  const timer = setTimeout(() => void pg.end({ timeout: 0 }), ANSWER_MS_MAX);
  try {
    const [row] = await pg<{ standby: boolean; commit: string; started: string }[]>`
      SELECT pg_is_in_recovery() AS standby, current_setting('synchronous_commit') AS commit,
        pg_postmaster_start_time()::text AS started`;
    if (url.hosts.length > 1 && row?.standby !== false) {
      throw new NoPrimaryError("none of the hosts is the primary now");
    }
    const commit = row?.commit === "remote_apply" ? "remote_apply" : "on";
    return { host, commit, startedAt: row?.started ?? "" };
  } finally {
    clearTimeout(timer);
    void pg.end({ timeout: 0 });
  }
}

/** A refused password or a missing database is worth more than a host that is away. */
function chosen(errors: readonly unknown[]): unknown {
  return errors.toSorted((one, other) => weightOf(other) - weightOf(one))[0];
}

function weightOf(error: unknown): number {
  if (error instanceof NoPrimaryError) return 1;
  return hasCode(error, /^(28|3D|42)|CERT/) ? 2 : 0;
}
