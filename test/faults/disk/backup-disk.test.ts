/** A full disk of the backups: everybody who asks is told, signals are stored, and the backup is made when there is room. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { askServer } from "../../../src/ops/client.ts";
import { cli, mintKey, startServe } from "../../kit/cli.ts";
import { scrape } from "../../ops/_metrics.ts";
import { post, until } from "../../kit/setup.ts";
import { fillDisk, mountDisk } from "../kit/disk.ts";
import { stop } from "../kit/faults.ts";

const FULL =
  /^The disk of \S+ is full, or a quota is used up \(\w+\): free some space, then try again\.$/;

test("a backup that finds no room says so in log, status, doctor and metrics, and leaves nothing behind", async () => {
  const root = mountDisk(16);
  const dir = join(root, "backups");
  const server = await startServe(["--backup-dir", dir, "--backup-every", "2s"]);
  const { dataDir, url } = server;
  const { key } = await mintKey(dataDir);
  const sample = async (name: string) => (await scrape(dataDir)).samples.get(name);
  const status = async () => (await cli(["status", "--data", dataDir])).stdout;
  await server.logged("backup made");
  expect(await sample("signalbox_backup_failing")).toBe(0);
  expect(await status()).not.toContain(`The disk of ${dir}`);

  // The file of the backup can be created, but not written.
  const makeRoom = fillDisk(root, 1 / 32);
  await server.logged("backup failed, it will be retried");
  const before = readdirSync(dir);
  expect(server.log().findLast(({ msg }) => msg.startsWith("backup failed"))).toMatchObject({
    level: "error",
    reason: expect.stringMatching(FULL),
  });
  const told = await status();
  expect(told).toMatch(/^! The last backup failed at \S+ \S+: The disk of \S+ is full, /m);
  expect(told).toMatch(
    /^! The disk of \S+ has 0 MiB left, and the next backup needs 1 MiB: it is tried, and may fail\.$/m,
  );
  const doctor = await cli(["doctor", "--json", "--data", dataDir]);
  expect(doctor.code).toBe(1);
  const found = JSON.parse(doctor.stdout) as { name: string; severity: string }[];
  for (const name of ["backups", "backup disk"]) {
    expect(found.find((finding) => finding.name === name)).toMatchObject({ severity: "problem" });
  }
  expect(await sample("signalbox_backup_failing")).toBe(1);
  const madeAt = await sample("signalbox_backup_latest_timestamp_seconds");
  // Signals do not depend on it.
  expect((await post(url, key)).status).toBe(201);
  expect((await askServer(dataDir, "/readyz")).status).toBe(200);
  expect(readdirSync(dir), "no part of a backup").toEqual(before);
  expect(before.every((name) => /^signalbox-\w+\.db$/.test(name))).toBe(true);

  makeRoom();
  await until(async () => (await sample("signalbox_backup_failing")) === 0);
  expect(Number(await sample("signalbox_backup_latest_timestamp_seconds"))).toBeGreaterThan(
    Number(madeAt),
  );
  expect(await status()).not.toContain("backup failed");
  await stop(server);
});
