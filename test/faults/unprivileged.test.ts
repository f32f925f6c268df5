/** The executable as a service runs: as a user without any right but to its own folder. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { makeCertificate, presentedName, writeCertificate } from "../_certificates.ts";
import { cli, mintKey, startServe } from "../_cli.ts";
import { buildExecutable } from "../_executable.ts";
import { requirePrograms } from "../_programs.ts";
import { callUrl, query, signal, temporaryFolder } from "../_setup.ts";

setDefaultTimeout(120_000);
requirePrograms("faults");

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
/** Whoever runs the tests as nobody in particular is one already. */
const uid = isRoot ? NOBODY : (process.getuid?.() ?? 0);
const gid = isRoot ? NOBODY : (process.getgid?.() ?? 0);
let program: string[] = [];

beforeAll(async () => {
  const rights = `--reuid=${uid} --regid=${gid} --clear-groups --bounding-set=-all`.split(" ");
  const setpriv = ["setpriv", ...(isRoot ? rights : []), "--no-new-privs", "--"];
  program = [...setpriv, await buildExecutable()];
});

/** A folder that is the service's own, in one that is not. */
function home(): { outside: string; cwd: string; dataDir: string } {
  const outside = temporaryFolder();
  chmodSync(outside, 0o755);
  const cwd = join(outside, "home");
  mkdirSync(cwd, { mode: 0o700 });
  if (isRoot) chownSync(cwd, uid, gid);
  return { outside, cwd, dataDir: join(cwd, "data") };
}

function statusOf(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, "utf8").trim().split("\n");
  return Object.fromEntries(lines.map((line) => line.split(":\t") as [string, string]));
}

describe("without privileges", () => {
  test("serves, takes commands, and stops; all that it leaves is its own", async () => {
    const { cwd, dataDir } = home();
    const options = { program, cwd, dataDir };
    const server = await startServe([], options);
    expect(statusOf(server.pid)).toMatchObject({
      Uid: [uid, uid, uid, uid].join("\t"),
      CapEff: "0000000000000000",
      NoNewPrivs: "1",
    });
    const { key } = await mintKey(dataDir, "alpha", options);
    const answer = await callUrl(server.url, "/v1/signals", {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify(signal),
    });
    expect(answer.status).toBe(201);
    expect((await cli(["healthcheck", "--data", dataDir], options)).code).toBe(0);
    const backup = join(cwd, "backup.db");
    expect((await cli(["backup", backup, "--data", dataDir], options)).code).toBe(0);
    expect(statSync(backup).uid).toBe(uid);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    expect(query(dataDir, "SELECT symbol FROM signals")).toEqual([{ symbol: signal.symbol }]);
    expect(statSync(join(dataDir, "signalbox.db")).uid).toBe(uid);
  });

  test("a new certificate is taken over by the running server", async () => {
    const { cwd, dataDir } = home();
    const files = writeCertificate(cwd, await makeCertificate("first"));
    if (isRoot) for (const file of Object.values(files)) chownSync(file, uid, gid);
    const args = ["--tls-cert", files.certFile, "--tls-key", files.keyFile];
    const server = await startServe(args, { program, cwd, dataDir });
    expect(await presentedName(server.url)).toBe("first");
    writeCertificate(cwd, await makeCertificate("second"));
    server.kill("SIGHUP");
    await server.logged("new certificate in use");
    for (let count = 0; count < 10; count++) {
      expect(await presentedName(server.url)).toBe("second");
    }
  });

  test("a folder where it may not write is refused in one sentence", async () => {
    const { cwd } = home();
    const { code, stderr } = await cli(["serve", "--data", "/signalbox"], { program, cwd });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        "signalbox: The data folder /signalbox cannot be used (EACCES): name a folder that this user may write to, with --data DIR.\n",
    });
  });

  // Only root can give a file to root.
  test.if(isRoot)(
    "a key that root hands to our group is taken, until all may read it",
    async () => {
      const { outside, cwd, dataDir } = home();
      const { certFile, keyFile } = writeCertificate(outside, await makeCertificate("handed"));
      chownSync(keyFile, 0, gid);
      chmodSync(keyFile, 0o640);
      const args = ["--tls-cert", certFile, "--tls-key", keyFile];
      const server = await startServe(args, { program, cwd, dataDir });
      expect(await presentedName(server.url)).toBe("handed");
      chmodSync(keyFile, 0o644);
      const { code, stderr } = await cli(["serve", ...args], { program, cwd });
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `signalbox: ${keyFile} is a private key, and open to other users (mode 0644): close it with: chmod 640 ${keyFile}\n`,
      });
    },
  );
});
