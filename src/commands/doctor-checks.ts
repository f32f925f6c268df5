/** The checks of `signalbox doctor`. */
import { checkCertificate } from "./doctor-certificate.ts";
import { SETTINGS_ADVICE } from "./finding.ts";
import { existsSync, statfsSync } from "node:fs";
import { shellQuoted } from "../domain/shell.ts";
import { planConnections } from "../net/connections.ts";
import { readDescriptorsMax } from "../net/sockets.ts";
import { type BackupPlan, type BackupStatus } from "../ops/backups.ts";
import { findNewest, listBackups } from "../ops/backup-folder.ts";
import { DISK_FREE_BYTES_MIN } from "../ops/health.ts";
import { databaseFiles, findMisfits } from "../store/open.ts";
import {
  attentionToBackups,
  attentionToDisk,
  attentionToServer,
  describeSending,
  formatBytes,
} from "./attention.ts";
import { requireStart } from "./check.ts";
import { checkClock } from "./clock.ts";
import { type FileSystem, fileSystemOf, freeBytes, measureFsync } from "./disk.ts";
import { type Check, type Facts, type Finding, judge, ok, problem, warning } from "./finding.ts";
import { toType } from "./hint.ts";
import { count, formatTime, plural } from "./print.ts";

/** A batch of signals waits for one fsync: 1 to 5 ms on a cloud volume. */
const FSYNC_MS_MAX = 20;
/** More than a backup of 10 million signals makes it grow to (docs/operations.md). */
const LOG_BYTES_MAX = 512 * 1024 * 1024;

/** By their names, in the order of their lines. */
export const checks: Readonly<Record<string, Check>> = {
  server: checkServer,
  "disk space": checkSpace,
  "file system": checkFileSystem,
  fsync: checkFsync,
  permissions: checkPermissions,
  clock: checkClock,
  certificate: checkCertificate,
  descriptors: checkDescriptors,
  log: checkLog,
  backups: checkBackups,
  configuration: checkConfiguration,
};

function checkServer({ server, health, data }: Facts): Finding {
  const stores = health === null || health.writer.ok;
  const since = server === null ? "" : formatTime(server.started_at);
  const runs = `It runs since ${since}`;
  // The last, if the server both is of another version and does not store.
  const attention = attentionToServer(server, health, data).slice(-1);
  if (attention.length === 0 && health?.certificate.ok === false) {
    return problem(`${runs}, but takes no signals: see certificate.`);
  }
  return judge(attention, stores ? "warning" : "problem", `${runs}, and stores signals.`);
}

function checkSpace({ config: { dataDir } }: Facts): Finding {
  const free = freeBytes(dataDir);
  const severity = free < DISK_FREE_BYTES_MIN ? "problem" : "warning";
  return judge(attentionToDisk(free), severity, `${formatBytes(free)} are free.`);
}

const LOCAL_DISK = "move the data folder to a local disk, with ext4 or xfs";

const risks: Readonly<Record<FileSystem["kind"], Omit<Finding, "severity">>> = {
  network: { sentence: "locks and fsync are not reliable on a network.", next: LOCAL_DISK },
  memory: { sentence: "a restart of the machine loses everything in memory.", next: LOCAL_DISK },
  container: { sentence: "it is lost with the container.", next: "put it on a volume" },
  fuse: { sentence: "this may be a network.", next: "make sure that it is a local disk" },
};

function checkFileSystem({ config: { dataDir } }: Facts): Finding {
  if (process.platform !== "linux") return ok("Only checked on Linux.");
  const fileSystem = fileSystemOf(statfsSync(dataDir).type);
  if (fileSystem === null) return ok("The data folder is on a local disk.");
  const { name, kind } = fileSystem;
  const { sentence, next } = risks[kind];
  const severity = kind === "network" || kind === "memory" ? "problem" : "warning";
  return { severity, sentence: `The data folder is on ${name}: ${sentence}`, next };
}

async function checkFsync({ config: { dataDir } }: Facts): Promise<Finding> {
  const time = await measureFsync(dataDir);
  const sentence = `An fsync takes ${time.toFixed(time < 10 ? 2 : 0)} ms.`;
  if (time <= FSYNC_MS_MAX) return ok(sentence);
  const next = "look for what else uses the disk, or use a faster one";
  return warning(`${sentence} Every signal waits for at least one.`, next);
}

function checkPermissions({ config: { dataDir } }: Facts): Finding {
  const { foreign, wrongMode } = findMisfits(dataDir);
  if (foreign[0] !== undefined) {
    const files = foreign.map(shellQuoted).join(" ");
    return problem(
      `${foreign[0]} belongs to another user.`,
      `sudo chown -h ${process.geteuid?.()} ${files}`,
    );
  }
  const [first] = wrongMode;
  if (first === undefined) return ok("Only the server's user can access the data folder.");
  const files = wrongMode.map(({ path }) => shellQuoted(path)).join(" ");
  return problem(`${first.path} has mode ${first.mode}.`, `chmod u+rwX,go= ${files}`);
}

/** The running server's limit, which its supervisor sets, or else this command's. */
function checkDescriptors({ config, server }: Facts): Finding {
  const max = readDescriptorsMax(server?.pid);
  if (max === null) return ok("Only checked on Linux.");
  const { public: possible } = planConnections(config, { warn: () => {} }, max);
  const sentence = `${count(max)} are allowed, enough for ${plural(possible, "connection")}`;
  if (possible >= config.connectionsMax) return ok(`${sentence}.`);
  return warning(
    `${sentence} of ${count(config.connectionsMax)} (--max-connections).`,
    "raise LimitNOFILE of the service, or ulimit -n, and restart the server",
  );
}

function checkLog({ config: { dataDir, externalCheckpoints } }: Facts): Finding {
  const bytes = databaseFiles.logBytes(dataDir);
  const sentence = `The write-ahead log has ${formatBytes(bytes)}.`;
  if (bytes <= LOG_BYTES_MAX) return ok(sentence);
  return warning(
    sentence,
    externalCheckpoints
      ? "see that the program that does the checkpoints runs"
      : "end what has been reading the database for long, such as sqlite3; it then shrinks",
  );
}

async function checkBackups({ config, server, data, now }: Facts): Promise<Finding> {
  const backups = server?.backups ?? (config.backups && (await statusOf(config.backups)));
  if (backups === null) {
    return warning(
      "This configuration makes no backups.",
      server === null
        ? `${SETTINGS_ADVICE}, with --backup-dir DIR unless another program makes backups`
        : "add --backup-dir DIR, unless another program makes them",
    );
  }
  const { dir, newest } = backups;
  const [late] = attentionToBackups({ backups, started_at: server?.started_at ?? 0 }, now);
  if (late !== undefined) {
    // A server that starts makes one at once.
    return server === null
      ? warning(late.problem, toType("serve", data) + ` --backup-dir ${shellQuoted(dir)}`)
      : problem(late.problem, late.next);
  }
  const { future } = await listBackups(dir);
  if (future.length > 0) {
    return warning(
      `${dir} has ${plural(future.length, "backup")} dated in the future, such as ${future.at(-1)}: they are neither counted nor deleted.`,
      "see that the clock is right (timedatectl), and move them away",
    );
  }
  if (newest === null) return ok("The server has just started, and will make the first one.");
  if (!existsSync(newest.file)) {
    return problem(
      `The newest backup, ${newest.file}, is gone.`,
      `if a backup command moves it, let it copy it instead; make another one: ${toType(`backup ${shellQuoted(newest.file)}`, data)}`,
    );
  }
  const damage = databaseFiles.problemOf(await databaseFiles.verify(newest.file));
  if (damage === null) {
    const sending = describeSending(backups);
    const and = sending === null ? "" : `, and was ${sending}`;
    return ok(`The newest, of ${formatTime(newest.at)}, is sound${and}.`);
  }
  return problem(
    `${newest.file} is damaged (${damage}).`,
    `check that disk, and make another backup: ${toType(`backup ${shellQuoted(newest.file)}`, data)}`,
  );
}

/** What the folder tells without a server. */
async function statusOf({ dir, everyMs, keep }: BackupPlan): Promise<BackupStatus> {
  const newest = await findNewest(dir);
  return {
    dir,
    every_ms: everyMs,
    keep,
    newest,
    verified_at: null,
    failure: null,
    stuck_since: null,
    sending: null,
  };
}

async function checkConfiguration({ config, server }: Facts): Promise<Finding> {
  await requireStart(config, server);
  return ok("Valid: serve would start with it.");
}
