/**
 * Runs a suite: `bun test/run.ts [quick | browser | faults]`. Without a name, the tests that need only
 * npm packages; `quick` leaves out the slow ones, too.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { bundle } from "../build.ts";
import { requirePrograms } from "./kit/programs.ts";
import { buildExecutable } from "./kit/executable.ts";

/** Two test files per core, because they wait half of the time. */
const parallel = `--parallel=${2 * navigator.hardwareConcurrency}`;

/** These take longest, and run with the faults, so that `bun run test` takes less than three minutes. */
const long = [
  "backups/backup",
  "backups/backup-command",
  "backups/backup-job",
  "cli/cli-output",
  "cli/stop-signals",
  "clients/clients",
  "clients/send",
  "commands/completion",
  "commands/copy.postgres",
  "commands/signals-cli",
  "feed/feed-client",
  "project/tour",
  "store/restore",
];

/** These start many processes or consoles. */
const slow = "test/{console/**,backups,cli,commands,checks}/*.test.ts";

function ignore(...patterns: readonly string[]): string[] {
  const all = ["test/{browser,faults}/**", `test/{${long.join(",")}}.test.ts`, ...patterns];
  return all.flatMap((pattern) => ["--path-ignore-patterns", pattern]);
}

const suites = {
  quick: {
    files: [parallel, ...ignore(slow)],
    others:
      "bun run test, bun run test:browser (Chromium), bun run test:faults (root, Debian packages)",
  },
  packages: {
    files: [parallel, ...ignore()],
    others: "bun run test:browser (Chromium), bun run test:faults (root, Debian packages)",
  },
  browser: {
    files: ["--parallel", "test/browser/"],
    others: "bun run test, bun run test:faults (root, Debian packages)",
  },
  faults: {
    files: [
      "--parallel=3",
      "test/faults/",
      ...long.map((name) => `test/${name}.test.ts`),
      // Again, on Debian's PostgreSQL.
      "test/store/postgres/",
    ],
    others: "bun run test, bun run test:browser (Chromium)",
  },
};

function isSuite(name: string): name is keyof typeof suites {
  return Object.hasOwn(suites, name);
}

/** For `test/_preload.ts`. */
async function bundleWorkers(outdir: string): Promise<void> {
  const entrypoints = bundle.entrypoints.filter((file) => file.endsWith(".worker.ts"));
  await Bun.build({
    entrypoints,
    root: bundle.root,
    outdir,
    target: "bun",
    splitting: true,
    sourcemap: "inline",
  });
}

async function run(name: string): Promise<number> {
  if (!isSuite(name))
    throw new Error(`There is no suite "${name}": use quick, browser, faults or none.`);
  if (name === "browser" || name === "faults") requirePrograms(name);
  const { files, others } = suites[name];
  const executable = await buildExecutable();
  const folder = mkdtempSync(join(tmpdir(), "signalbox-tests-"));
  // PostgreSQL, which does not run as root, has its folders in it.
  chmodSync(folder, 0o711);
  await bundleWorkers(folder);
  // Bun forgets the timeout of test/_preload.ts after the first file. In full numbers, faults take long.
  const timeout = `--timeout=${name === "faults" ? 900_000 : 120_000}`;
  const command = [process.execPath, "test", timeout, ...files];
  const tests = Bun.spawn(command, {
    env: {
      FAULTS: "full",
      // Handing freed memory back to the system at once costs a third of the processor time.
      MIMALLOC_PURGE_DELAY: "-1",
      ...process.env,
      SIGNALBOX_TEST_WORKERS: folder,
      SIGNALBOX_TEST_EXECUTABLE: executable,
      // It has Debian's: tests of that engine that are skipped there must not look like a pass.
      SIGNALBOX_TEST_POSTGRES: name === "faults" ? "required" : "",
      // Hints name an executable that is on the PATH, and give the path of any other.
      PATH: `${dirname(executable)}:${process.env["PATH"]}`,
    },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const code = await tests.exited;
  // The last server of PostgreSQL may be ending.
  rmSync(folder, { recursive: true, maxRetries: 20, retryDelay: 100 });
  console.log(`Other suites: ${others}`);
  return code;
}

try {
  process.exitCode = await run(process.argv[2] ?? "packages");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
