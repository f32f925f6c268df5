/** `signalbox copy`: moves everything from a data folder to PostgreSQL, or back. */
import { resolve } from "node:path";
import { Option } from "commander";
import type { MoveOptions } from "../domain/storage/engine.ts";
import { UsageError, UserError } from "../lib/errors.ts";
import { isStoreUrl, placeName } from "../lib/place.ts";
import { readStoreUrl } from "../lib/store-url.ts";
import { copyStorage, hasDatabase } from "../store/open.ts";
import { defineCommand } from "../cli/define.ts";
import { jsonOption } from "../cli/options.ts";
import { plural, printChanged, printNote } from "../cli/print.ts";
import { startBar } from "../cli/progress.ts";
import { stopAtSignals } from "../cli/stop-signal.ts";

interface CopyOptions {
  readonly from?: string;
  readonly to?: string;
  readonly json?: true;
}

export const copyCommand = defineCommand({
  name: "copy",
  description: "copy everything from a data folder to PostgreSQL, or back; servers must be stopped",
  options: [
    new Option(
      "--from <place>",
      "a data folder, or the URL of a database (default: SIGNALBOX_STORE)",
    ),
    new Option("--to <place>", "an empty folder or database (default: SIGNALBOX_STORE)"),
    jsonOption(),
  ],
  notes: `
Keeps ids, desks, keys, members, passkeys, links and the audit, and compares every row at the end. The target cannot
be used before. If it is interrupted, type the same again: it goes on after the last signal. Members must sign in to
the console again; counts of activity are not copied. Put a URL that has a password in SIGNALBOX_STORE.`,
  examples: [
    "signalbox copy --from /var/lib/signalbox --to postgres://signalbox@db.example.com/signalbox",
    "SIGNALBOX_STORE=postgres://signalbox:PASSWORD@db.example.com/signalbox signalbox copy --from /var/lib/signalbox",
    "signalbox copy --from postgres://signalbox@db.example.com/signalbox --to /var/lib/signalbox",
  ],
  run: async (options: CopyOptions) => {
    const [from, to] = [placeOf("--from", options.from), placeOf("--to", options.to)];
    refuseSameEngine(from, to);
    if (!isStoreUrl(from) && !hasDatabase(from)) {
      throw new UserError(`There is no database in ${from}: name its folder with --from DIR.`);
    }
    const startedAt = performance.now();
    const { tables, newest_id } = await showMove((moving) => copyStorage(from, to, moving));
    const [source, target] = [placeName(from), placeName(to)];
    const duration_ms = Math.round(performance.now() - startedAt);
    const signals = tables["signals"] ?? 0;
    if (options.json) printChanged({ from: source, to: target, newest_id, tables, duration_ms });
    printNote(
      `${target} has ${plural(signals, "signal")}, the newest ${newest_id ?? "-"}, and all else of ${source}: every row was compared. Start no server with ${source} again, or bots would store signals in both.`,
    );
  },
});

function placeOf(flag: string, typed?: string): string {
  const store = process.env["SIGNALBOX_STORE"]?.trim() ?? "";
  if (typed === undefined && store === "") {
    throw new UsageError(
      `${flag} is missing: signalbox copy --from DIR --to postgres://signalbox@db.example.com/signalbox`,
    );
  }
  if (typed === undefined) return readStoreUrl(store);
  // A mistyped URL is no folder, and may have a password.
  return /:\/\/|\bpassword=/.test(typed) ? readStoreUrl(typed, flag) : resolve(typed);
}

function refuseSameEngine(from: string, to: string): void {
  if (isStoreUrl(from) !== isStoreUrl(to)) return;
  throw new UsageError(
    isStoreUrl(from)
      ? "Both are PostgreSQL: copy one to the other with pg_dump and pg_restore."
      : "Both are folders: copy one with signalbox backup, and make the other with signalbox restore.",
  );
}

/** With a bar on a terminal. */
async function showMove<T>(work: (moving: MoveOptions) => Promise<T>): Promise<T> {
  const signal = stopAtSignals();
  const bar = await startBar("copy {bar} {percentage}% of {total} signals {phase}", 1, {
    phase: "copied",
  });
  try {
    return await work({
      signal,
      onProgress: ({ phase, signals, total }) => {
        bar?.setTotal(total);
        bar?.update(signals, { phase });
      },
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new UserError("The copy was stopped: type the same again, and it goes on.");
  } finally {
    bar?.stop();
  }
}
