/** Restore drills that are killed, or find no room: signals go on, nothing is left behind, and everybody who asks is told. */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { cli, mintKey, startServe } from "../../kit/cli.ts";
import { post, temporaryFolder, until } from "../../kit/setup.ts";
import { scrape } from "../../ops/_metrics.ts";
import { holdCopy, seed } from "../../store/_databases.ts";
import { fillDisk, mountDisk } from "../kit/disk.ts";
import { kill, stop } from "../kit/faults.ts";

const PASSED = "backup drill passed";

/** Enough to stop a drill half-way. */
const MANY = 50_000;

const hiddenIn = (folder: string) => readdirSync(folder).filter((name) => name.startsWith("."));

test("a server that is killed during a drill makes it again, and leaves no copy", async () => {
  const { dataDir, key } = await seed({ signals: MANY });
  const drills = ["--backup-dir", temporaryFolder(), "--backup-drill", "1w"];
  const server = await startServe(drills, { dataDir });
  const drill = await holdCopy(dataDir);
  // Signals do not wait for it.
  expect((await post(server.url, key)).status).toBe(201);
  await kill(server);
  process.kill(drill.pid, "SIGKILL");
  expect(hiddenIn(dataDir)).toHaveLength(1);
  await until(async () => (await cli(["status", "--data", dataDir])).code === 0);
  const next = await startServe(drills, { dataDir });
  await next.logged(PASSED);
  expect(hiddenIn(dataDir)).toEqual([]);
  await stop(next);
  // A week has begun.
  const last = await startServe(drills, { dataDir });
  await Bun.sleep(1_000);
  expect(last.output.stderr).not.toContain("drill");
  await stop(last);
});

test("a drill that is stopped, by a stop of the server or by its end, has not failed", async () => {
  const { dataDir } = await seed({ signals: MANY });
  const dir = temporaryFolder();
  const drills = ["--backup-dir", dir, "--backup-drill", "1w"];
  const server = await startServe(drills, { dataDir });
  // systemd ends all processes of a service at once.
  const { pid } = await holdCopy(dataDir);
  for (const signal of ["SIGTERM", "SIGCONT"]) process.kill(pid, signal);
  await stop(server);
  expect(server.output.stderr).not.toContain("drill");
  expect([hiddenIn(dataDir), hiddenIn(dir)]).toEqual([[], []]);
});

test("a drill without room is skipped with a warning, and made in the folder that has room", async () => {
  const root = mountDisk(1_400);
  const { key } = await mintKey(join(root, "data"));
  const makeRoom = fillDisk(root, 600);
  mkdirSync(join(root, "backups"));
  const every = ["--backup-every", "2s", "--backup-drill", "1s"];
  const args = ["--backup-dir", join(root, "backups"), ...every];
  const server = await startServe(args, { dataDir: join(root, "data") });
  const { dataDir, url } = server;
  await server.logged("backup drill skipped, it will be retried");
  const { stdout } = await cli(["status", "--data", dataDir]);
  expect(stdout).toMatch(
    /^! The drill at .* was skipped: There is no room to restore \S+: it needs \d+ MiB in \S+, which has \d+ MiB left, or \d+ MiB in \S+, which has \d+ MiB left\. Free some space\.$/m,
  );
  const failing = async () => (await scrape(dataDir)).samples.get("signalbox_backup_drill_failing");
  expect(await failing()).toBe(1);
  expect((await post(url, key)).status).toBe(201);
  makeRoom();
  await server.logged(PASSED);
  await until(async () => (await failing()) === 0);
  await stop(server);

  // Only the backups' disk has room.
  fillDisk(root, 600);
  const away = mountDisk(64);
  const elsewhere = await startServe(["--backup-dir", away, ...every], { dataDir });
  await elsewhere.logged(PASSED);
  expect(hiddenIn(away)).toEqual([]);
  await stop(elsewhere);
});
