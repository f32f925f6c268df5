/**
 * Finds the primary among the hosts of a URL by asking all of them at once. postgres.js would try one after the other:
 * each host that does not answer costs its whole time-out, and an error of one, such as a standby that is starting,
 * counts as the answer of all.
 */
import { connect } from "./connect.ts";
import { hasCode, NotPrimaryError } from "./failures.ts";

interface Primary {
  /** With this host only. */
  readonly url: string;
  /** The `synchronous_commit` to ask for. */
  readonly commit: "on" | "remote_apply";
  /** When it was started, which tells two names of one server from two servers. */
  readonly startedAt: string;
}

const HOSTS = /^([a-z]+:\/\/(?:[^/]*@)?)([^/?]+)(.*)$/i;
const ANSWER_MS_MAX = 3_000;
/** So long the others may say that they are primaries, too. */
const OTHERS_MS = 300;
/** Another time-out may be set for the role or the database. */
const SETTINGS = { application_name: "signalbox", statement_timeout: "0" };

/**
 * Rejects with the failure that says most; also if two servers say that they are the primary, because each server of ours
 * might then store in another one.
 */
export async function findPrimary(url: string): Promise<Primary> {
  const urls = urlsOf(url);
  const asked = urls.map((one) => ask(one, urls.length > 1));
  try {
    const found: Primary[] = [];
    for (const one of asked) void one.then((primary) => found.push(primary)).catch(() => {});
    const first = await Promise.any(asked);
    await Promise.race([Promise.allSettled(asked), Bun.sleep(OTHERS_MS)]);
    if (found.some(({ startedAt }) => startedAt !== first.startedAt)) {
      throw new SeveralPrimariesError();
    }
    return first;
  } catch (error) {
    throw error instanceof AggregateError ? chosen(error.errors) : error;
  }
}

/** One URL per host. */
function urlsOf(url: string): string[] {
  const [, before = "", hosts = "", after = ""] = HOSTS.exec(url) ?? [];
  // That is what is done here, and for a single host it would make postgres.js try for ever.
  const path = after.replace(/([?&])target_session_attrs=[^&]*&?/, "$1").replace(/[?&]$/, "");
  return hosts.split(",").map((host) => before + host + path);
}

async function ask(url: string, mustBePrimary: boolean): Promise<Primary> {
  const pg = connect(url, { max: 1, settings: SETTINGS });
  const timer = setTimeout(() => void pg.end({ timeout: 0 }), ANSWER_MS_MAX);
  try {
    const [row] = await pg<{ standby: boolean; commit: string; started: string }[]>`
      SELECT pg_is_in_recovery() AS standby, current_setting('synchronous_commit') AS commit,
        pg_postmaster_start_time()::text AS started`;
    if (mustBePrimary && row?.standby !== false) throw new NotPrimaryError();
    const commit = row?.commit === "remote_apply" ? "remote_apply" : "on";
    return { url, commit, startedAt: row?.started ?? "" };
  } finally {
    clearTimeout(timer);
    void pg.end({ timeout: 0 });
  }
}

/** As if there were none. */
class SeveralPrimariesError extends Error {
  readonly code = "25006";

  constructor() {
    super("two of the hosts are primaries: fence or stop the one that is not");
  }
}

/** A refused password or a missing database is worth more than a host that is away. */
function chosen(errors: readonly unknown[]): unknown {
  return errors.toSorted((one, other) => weightOf(other) - weightOf(one))[0];
}

function weightOf(error: unknown): number {
  if (error instanceof NotPrimaryError) return 1;
  return hasCode(error, /^(28|3D|42)|CERT/) ? 2 : 0;
}

/** The hosts of a URL for messages: never its password. */
export function hostsOf(url: string): string {
  return HOSTS.exec(url)?.[2] ?? "the database server";
}
