/** `signalbox doctor` where its findings need a slow disk, a full disk or another user. */
import { expect, test } from "bun:test";
import { chownSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cli, type CliOptions, mintKey, spawn, startServe } from "../../kit/cli.ts";
import { buildExecutable } from "../../kit/executable.ts";
import { temporaryFolder } from "../../kit/setup.ts";
import { mountMemory } from "../kit/disk.ts";
import { stop } from "../kit/faults.ts";
import { asNobody, NOBODY, nobodysFolder } from "../kit/nobody.ts";
import { underStrace } from "../kit/strace.ts";

async function newFolder(folder = temporaryFolder()): Promise<string> {
  await mintKey(folder);
  return folder;
}

/** What it prints. */
async function doctor(dataDir: string, options: CliOptions = {}) {
  const { code, stdout } = await cli(
    ["doctor", "--data", dataDir, "--listen", "127.0.0.1:0"],
    options,
  );
  return { code, stdout };
}

/** Delays each fsync. */
function slowly(ms: number): CliOptions {
  return { program: underStrace(["-e", `inject=fsync,fdatasync:delay_enter=${ms}ms`]) };
}

test("a slow fsync is a warning, and the probe is removed", async () => {
  const dataDir = await newFolder();
  const { code, stdout } = await doctor(dataDir, slowly(50));
  expect(stdout).toMatch(/^warn {2}fsync +An fsync takes [5-9]\d ms\. .* Next: look for/m);
  expect(code).toBe(0);
  expect(existsSync(join(dataDir, ".doctor.signalbox-partial"))).toBe(false);
});

test("the probe is removed when Ctrl-C interrupts it", async () => {
  const dataDir = await newFolder();
  const probe = join(dataDir, ".doctor.signalbox-partial");
  const child = spawn(["doctor", "--data", dataDir], slowly(500));
  while (!existsSync(probe)) await Bun.sleep(5);
  child.kill("SIGINT");
  expect(await child.exited).toBe(1);
  expect(existsSync(probe)).toBe(false);
  expect(await new Response(child.stdout).text()).not.toContain("fsync");
});

test("a disk with little space fails", async () => {
  const { code, stdout } = await doctor(await newFolder(mountMemory(100)));
  expect(stdout).toMatch(
    /^fail {2}disk +The disk has 9\d MiB left; below 128 MiB signals may be refused\. Next: free some space$/m,
  );
  expect(code).toBe(1);
});

test("beside a service with a low port, a user without that right gets no false alarm", async () => {
  const executable = await buildExecutable();
  const cwd = nobodysFolder();
  const service = "--inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service";
  const user = "--inh-caps=-all --ambient-caps=-all";
  const dataDir = join(cwd, "data");
  const listen = "127.0.0.1:943";
  const program = asNobody(service, executable);
  const server = await startServe([], { program, cwd, dataDir, listen });
  for (const command of [["doctor"], ["serve", "--check"]]) {
    const args = [...command, "--data", dataDir, "--listen", listen];
    const { code, stderr } = await cli(args, {
      program: asNobody(user, executable),
      cwd,
    });
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: command[0] === "doctor" ? "" : expect.stringContaining("configuration is valid"),
    });
  }
  await stop(server);
});

test("a file that another user owns fails, with the command that changes it", async () => {
  const dataDir = await newFolder();
  const database = join(dataDir, "signalbox.db");
  chownSync(database, NOBODY, NOBODY);
  const { code, stdout } = await doctor(dataDir);
  expect(code).toBe(1);
  const next = /^fail {2}permissions .* belongs to another user\. Next: sudo (.*)$/m.exec(stdout);
  expect(Bun.spawnSync(["sh", "-c", next?.[1] ?? "false"]).exitCode).toBe(0);
  expect(readFileSync(database).length).toBeGreaterThan(0);
  expect((await doctor(dataDir)).stdout).toMatch(/^ok {4}permissions /m);
});
