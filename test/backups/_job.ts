import { writeFileSync } from "node:fs";
import { pino } from "pino";
import { BackupJob, type BackupWork, type MakeBackup } from "../../src/backups/backups.ts";
import type { BackupPlan } from "../../src/backups/status.ts";
import { HOUR_MS } from "../../src/lib/text/time.ts";
import { type LogLine, onCleanup, temporaryFolder } from "../kit/setup.ts";

/** Runs a job in this process, whose backups are files with one word. */
export function startJob(
  plan: Partial<BackupPlan> = {},
  make: MakeBackup = makeWord,
  more: Partial<BackupWork> = {},
) {
  const log: LogLine[] = [];
  const made: string[] = [];
  const logger = pino({}, { write: (line: string) => void log.push(JSON.parse(line) as LogLine) });
  const dir = plan.dir ?? temporaryFolder();
  const work = {
    make: (...[file, making]: Parameters<MakeBackup>) => {
      made.push(file);
      return make(file, making);
    },
    drill: () => Promise.resolve({}),
    roomIn: () => Promise.resolve({ free: 1, needed: 0 }),
    findOwn: ([newest]: readonly string[]) => Promise.resolve(newest ?? null),
    ...more,
  };
  const job = new BackupJob(
    { everyMs: HOUR_MS, keep: 3, command: null, drillMs: null, ...plan, dir },
    work,
    logger,
  );
  onCleanup(() => job.stop());
  return { job, dir, log, made, lines: (msg: string) => log.filter((line) => line.msg === msg) };
}

export function makeWord(file: string): Promise<object> {
  writeFileSync(file, "backup");
  return Promise.resolve({ signals: 7 });
}
