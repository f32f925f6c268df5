/**
 * Every check, once: `/readyz`, `status` and `doctor` choose from this table, and say the same of what they find.
 */
import type { CheckFinding, CheckKind } from "../domain/notice/notice.ts";
import { messageOf } from "../lib/errors.ts";
import { SECOND_MS } from "../lib/text/time.ts";
import type { ServerStatus } from "../ops/server.ts";
import { checkBackupDisk, checkBackupFolder, checkBackups, checkDrill } from "./backups.ts";
import { checkCertificate } from "./certificate.ts";
import { checkClock, checkIds } from "./clock.ts";
import { checkDatabase, checkReplication } from "./database.ts";
import { checkDesks, checkKeys } from "./desks.ts";
import { checkFileSystem, checkFsync, checkLog, checkPermissions, checkSpace } from "./disk.ts";
import { type Check, type Context, type Finding, ok, problem, stop, warning } from "./finding.ts";
import {
  checkConsole,
  checkDescriptors,
  checkServer,
  checkSignals,
  checkWriter,
} from "./server.ts";

type Use = "readyz" | "status" | "doctor" | "notices";

export interface Row {
  readonly name: string;
  readonly usedBy: readonly Exclude<Use, "notices">[];
  /** About what the operator gets a notice. */
  readonly notice?: CheckKind;
  readonly check: Check;
}

const everywhere = ["readyz", "status", "doctor"] as const;
const commands = ["status", "doctor"] as const;
const doctor = ["doctor"] as const;

/** In the order of their lines. The disk of the backups may hang, which keeps later checks from being made. */
const table: readonly Row[] = [
  { name: "server", usedBy: commands, check: checkServer },
  { name: "writer", usedBy: everywhere, check: checkWriter },
  { name: "signals", usedBy: commands, notice: "damaged", check: checkSignals },
  { name: "disk", usedBy: everywhere, notice: "disk", check: checkSpace },
  { name: "file system", usedBy: doctor, check: checkFileSystem },
  { name: "fsync", usedBy: doctor, check: checkFsync },
  { name: "permissions", usedBy: doctor, check: checkPermissions },
  { name: "database", usedBy: doctor, check: checkDatabase },
  { name: "log", usedBy: doctor, check: checkLog },
  { name: "clock", usedBy: doctor, notice: "clock", check: checkClock },
  { name: "ids", usedBy: commands, notice: "clock", check: checkIds },
  { name: "replication", usedBy: commands, check: checkReplication },
  { name: "certificate", usedBy: everywhere, notice: "certificate", check: checkCertificate },
  { name: "console", usedBy: everywhere, check: checkConsole },
  { name: "descriptors", usedBy: doctor, check: checkDescriptors },
  { name: "desks", usedBy: commands, check: checkDesks },
  { name: "keys", usedBy: commands, check: checkKeys },
  { name: "backups", usedBy: commands, notice: "backup", check: checkBackups },
  { name: "backup disk", usedBy: commands, notice: "disk", check: checkBackupDisk },
  { name: "backup folder", usedBy: commands, check: checkBackupFolder },
  { name: "backup drill", usedBy: commands, notice: "backup", check: checkDrill },
  // Looks at the folder of the backups, too.
  { name: "configuration", usedBy: doctor, check: checkConfiguration },
];

async function checkConfiguration({ requireStart }: Context): Promise<Finding> {
  await requireStart();
  return ok("Valid: serve would start with it.");
}

/** All checks of one use together, except for `--deep`. */
const MS_MAX = 10 * SECOND_MS;

export const NAME_WIDTH = Math.max(...table.map(({ name }) => name.length));

/** Makes the checks of one use, in their order. One that cannot be made does not keep the others from being made. */
export async function* runChecks(
  use: Use,
  context: Context,
  msMax = MS_MAX,
): AsyncGenerator<Finding & { readonly name: string }> {
  const deadline = performance.now() + msMax;
  for (const row of table) {
    const { name, usedBy, notice } = row;
    if (!(use === "notices" ? notice !== undefined : usedBy.includes(use))) continue;
    const left = context.isDeep ? null : deadline - performance.now();
    // Not started: it may look at the disk that hangs.
    const found =
      left !== null && left <= 0
        ? warning(`The check "${name}" was not made, because the ones before it took too long.`)
        : await examine(row, context, left);
    for (const finding of [found ?? []].flat()) yield { name, ...finding };
  }
}

async function examine(
  { name, check }: Row,
  context: Context,
  milliseconds: number | null,
): Promise<Finding | readonly Finding[] | null> {
  const made = (async () => check(context))().catch((error: unknown) =>
    // `explain` knows what to type.
    problem(context.explain(error)),
  );
  if (milliseconds === null) return made;
  let timer: Timer | undefined;
  const late = new Promise<Finding>((tell) => {
    const unanswered = stop(
      `The check "${name}" did not end in time.`,
      "look whether a disk hangs, or is too slow",
    );
    timer = setTimeout(() => tell(unanswered), milliseconds);
  });
  try {
    return await Promise.race([made, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The answer of `/readyz`: what the server knows without looking at its folder's files. */
export interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail: string }>>;
}

export async function readiness(known: Known): Promise<Readiness> {
  const checks: Record<string, { ok: boolean; detail: string }> = {};
  let ready = true;
  for await (const { name, sentence, stopsSignals } of runChecks("readyz", contextOf(known))) {
    const before = checks[name];
    checks[name] = {
      ok: before?.ok !== false && stopsSignals === undefined,
      detail: before === undefined ? sentence : `${before.detail} ${sentence}`,
    };
    ready &&= stopsSignals !== true;
  }
  return { ready, checks };
}

/** What the operator gets notices about. */
export async function findForNotices(known: Known): Promise<CheckFinding[]> {
  const findings: CheckFinding[] = [];
  const kinds = new Map(table.map(({ name, notice }) => [name, notice]));
  for await (const { name, severity, sentence, next } of runChecks("notices", contextOf(known))) {
    const notice = kinds.get(name);
    if (notice === undefined) continue;
    findings.push({ name, notice, isOk: severity === "ok", sentence, next });
  }
  return findings;
}

/** What a running server knows of itself. */
type Known = Pick<Context, "dataDir" | "files" | "now"> & {
  readonly server: ServerStatus;
  /** Absent for `/readyz`, which reads no signal. */
  readonly newest?: Context["newest"];
};

function contextOf({ newest = none, ...known }: Known): Context {
  return {
    ...known,
    newest,
    config: null,
    isDeep: false,
    toType: (command) => `signalbox ${command}`,
    explain: messageOf,
    stored: none,
    requireStart: () => Promise.resolve(),
  };
}

function none(): Promise<never> {
  return Promise.reject(new Error("not known here"));
}
