/** `signalbox status`, `signalbox config` and `serve --check`. */
import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/commands/serve/read-config.ts";
import { serveCommand } from "../../src/commands/serve/serve.ts";
import { type ServeOptions, settings } from "../../src/commands/serve/settings.ts";
import { DAY_MS } from "../../src/lib/text/time.ts";
import packageJson from "../../package.json" with { type: "json" };
import { makeCertificate, writeCertificate } from "../kit/certificates.ts";
import { cliHere, commandsOn, freePort, mintKey, startServe } from "../kit/cli.ts";
import { onCleanup, openForDamage, post, temporaryFolder } from "../kit/setup.ts";

interface StatusJson {
  readonly server: { readonly backups: { readonly newest: object | null } | null } | null;
  readonly desks: readonly object[];
  readonly attention: readonly { readonly problem: string; readonly next: string }[];
}

function statusOf(dataDir: string): Promise<StatusJson> {
  return commandsOn(dataDir).json<StatusJson>("status");
}

describe("status", () => {
  test("without a server says that it is not running, and what to type", async () => {
    const dataDir = temporaryFolder();
    await mintKey(dataDir);
    expect(await statusOf(dataDir)).toMatchObject({
      version: packageJson.version,
      server: null,
      desks: [{ name: "alpha", active_keys: 1, latest_signal: null }],
      rate: { last_minute: 0, last_hour: 0 },
      attention: [
        { problem: "The server is not running.", next: `signalbox serve --data ${dataDir}` },
      ],
    });
    const { stdout, stderr } = await cliHere(["status", "--data", dataDir]);
    expect(stdout).toMatch(/^server +not running$/m);
    expect(stderr).toBe("");
  });

  test("of a server that hangs says so, instead of that it does not run", async () => {
    const server = await startServe();
    server.kill("SIGSTOP");
    onCleanup(() => server.kill("SIGCONT"));
    await mintKey(server.dataDir);
    const { stdout } = await cliHere(["status", "--data", server.dataDir]);
    expect(stdout).toMatch(/^server +no answer$/m);
    expect(stdout).toContain(
      "! A server or a restore uses the data folder, and does not answer.\n",
    );
  });

  test("names keys that have ended and are still in use, of archived desks and by readers, too", async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const flags = ["--console-listen", "127.0.0.1:0", "--read-listen", address];
    const server = await startServe(flags);
    const { dataDir, url } = server;
    const { run, json } = commandsOn(dataDir);
    const revoked = await mintKey(dataDir);
    const archived = await mintKey(dataDir, "beta");
    const unused = await mintKey(dataDir);
    const [reader, active] = [
      await json<{ id: string; key: string }>("key", "mint", "--read"),
      await json<{ key: string }>("key", "mint", "--read"),
    ];
    for (const { id } of [revoked, unused, reader]) await run("key", "revoke", id);
    await run("desk", "archive", "beta");
    for (const { key } of [revoked, archived]) expect((await post(url, key)).status).toBe(401);
    for (const { key } of [reader, active]) {
      await fetch(`http://${address}/feed`, { headers: { Authorization: `Bearer ${key}` } });
    }
    const named = async () =>
      (await statusOf(dataDir)).attention.flatMap(
        ({ problem }) => /^Key (\S+) .* still uses it\.$/.exec(problem)?.[1] ?? [],
      );
    while ((await named()).length < 3) await Bun.sleep(200);
    expect((await named()).toSorted()).toEqual(
      [revoked, archived, reader].map(({ id }) => id).toSorted(),
    );
    server.kill("SIGTERM");
    await server.exited;
    const file = join(dataDir, "signalbox-activity.db");
    writeFileSync(file, "damaged");
    expect(await named()).toEqual([]);
    expect(readFileSync(file, "utf8")).toBe("damaged");
  });

  test("lists who sends unknown keys, to either interface, by the hash of the key's start", async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const { dataDir, url } = await startServe(["--read-listen", address]);
    await mintKey(dataDir);
    expect((await cliHere(["status", "--data", dataDir])).stdout).not.toContain("UNKNOWN KEY");
    const wrong = `sbk_12${"0".repeat(60)}`;
    for (let count = 0; count < 2; count += 1) expect((await post(url, wrong)).status).toBe(401);
    await fetch(`http://${address}/feed`, { headers: { Authorization: `Bearer ${wrong}` } });
    await fetch(`http://${address}/feed`);
    // As docs/operations.md says to compute it.
    const file = join(temporaryFolder(), "key.txt");
    writeFileSync(file, `${wrong}\n`);
    const hash = await Bun.$`head -c 8 ${file} | sha256sum | head -c 12`.text();
    expect((await statusOf(dataDir)).server).toMatchObject({
      unknown_keys: {
        keys: [
          { address: "127.0.0.1", hash, count: 3 },
          { address: "127.0.0.1", hash: null, count: 1 },
        ],
        others: 0,
      },
    });
    const { stdout } = await cliHere(["status", "--data", dataDir]);
    expect(stdout).toMatch(new RegExp(`^127\\.0\\.0\\.1 +${hash} +3 +\\d{4}-`, "m"));
    expect(stdout).toMatch(/^127\.0\.0\.1 +none +1 +/m);
    expect(stdout).not.toContain(wrong.slice(0, 6));
  });

  test("shows the server's addresses, the latest signals, the rate and the backup", async () => {
    const backups = temporaryFolder();
    const ops = `127.0.0.1:${await freePort()}`;
    const read = `127.0.0.1:${await freePort()}`;
    const listen = ["--ops-listen", ops, "--read-listen", read];
    const server = await startServe([...listen, "--backup-dir", backups]);
    const { dataDir, url } = server;
    const { key } = await mintKey(dataDir);
    await mintKey(dataDir, "beta");
    for (const symbol of ["ETH", "BTC"]) {
      expect((await post(url, key, { symbol })).status).toBe(201);
    }
    await server.logged("backup made");
    const status = await statusOf(dataDir);
    expect(status).toMatchObject({
      server: {
        version: packageJson.version,
        pid: server.pid,
        public_url: url,
        listen: url.slice("http://".length),
        console_url: null,
        ops_listen: ops,
        read_listen: read,
        feed_url: `http://${read}/feed`,
        certificate_expires_at: null,
        backups: { dir: backups, every_ms: 3_600_000, keep: 24, failure: null },
      },
      desks: [
        { name: "alpha", latest_signal: { symbol: "BTC", received_at: expect.any(Number) } },
        { name: "beta", latest_signal: null },
      ],
      rate: { last_minute: 2, last_hour: 2 },
      disk_free_bytes: expect.any(Number),
      attention: [],
    });
    const [made = ""] = readdirSync(backups);
    expect(status.server?.backups?.newest).toMatchObject({ file: join(backups, made) });
    const { stdout } = await cliHere(["status", "--data", dataDir]);
    expect(stdout).toMatch(/^certificate +none needed: this machine only$/m);
    expect(stdout).toMatch(new RegExp(`^feed +http://${read}/feed$`, "m"));
    expect(stdout).toMatch(/^rate +2 signals in the last minute, 2 in the last hour$/m);
    expect(stdout).toMatch(/^alpha +1 +\d{4}-.*Z +BTC$/m);
    expect(stdout).toContain(`${join(backups, made)}; the latest 24 are kept\n`);
    expect(stdout).toEndWith("Nothing needs attention.\n");
  });

  test("names what needs attention, each with what to do", async () => {
    const soon = await makeCertificate("soon", { to: new Date(Date.now() + 3 * DAY_MS) });
    const { certFile, keyFile } = writeCertificate(temporaryFolder(), soon);
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    const tls = ["--tls-cert", certFile, "--tls-key", keyFile];
    const server = await startServe([...tls, "--backup-dir", join(file, "b")]);
    const { dataDir } = server;
    await server.logged("backup failed");
    const { run, json } = commandsOn(dataDir);
    const said = async () =>
      (await statusOf(dataDir)).attention.map(({ problem, next }) => `${problem} ${next}`);
    expect(await said()).toEqual([
      expect.stringMatching(/^The certificate expires at .* renew it/),
      `There is no desk. signalbox desk create NAME --data ${dataDir}`,
      expect.stringMatching(
        /^The last backup failed at .*The folder .* cannot be used for backups \(ENOTDIR\): name one that this user may write to\. fix the cause; the server tries again within a minute$/,
      ),
    ]);
    await run("desk", "create", "alpha");
    await run("desk", "archive", "alpha");
    expect((await said())[1]).toBe(
      `Every desk is archived. signalbox desk archive NAME --undo --data ${dataDir}`,
    );
    await run("desk", "archive", "alpha", "--undo");
    await run("key", "mint", "--read", "--desk", "alpha");
    expect((await said())[1]).toBe(
      `Desk alpha has no active send key. signalbox key mint --desk alpha --data ${dataDir}`,
    );
    const mint = ["key", "mint", "--desk", "alpha", "--expires", "2d"];
    const { id } = await json<{ id: string }>(...mint);
    expect((await said())[1]).toMatch(`signalbox key rotate ${id} --data ${dataDir}`);
    // A rotated key is meant to expire, and needs attention only while it is used.
    await run("key", "rotate", id, "--expires", "90d");
    expect(await said()).toHaveLength(2);
    const use = "UPDATE api_keys SET last_used_at = ? WHERE id = ?";
    openForDamage(dataDir).run(use, [Date.now(), id]);
    expect((await said())[1]).toMatch(`Key ${id} of desk alpha was rotated, is still used`);
  });
});

async function settingsOf(args: readonly string[], env: Record<string, string> = {}) {
  const { code, stdout } = await cliHere(["config", "--json", ...args], {
    env: { SIGNALBOX_CONSOLE_LISTEN: "off", ...env },
  });
  expect(code).toBe(0);
  const rows = JSON.parse(stdout) as { flag: string; value: string | null; source: string }[];
  return Object.fromEntries(rows.map(({ flag, value, source }) => [flag, [value, source]]));
}

describe("config", () => {
  test("shows each setting as it was written, and where it comes from", async () => {
    const env = {
      SIGNALBOX_LISTEN: "127.0.0.1:9000",
      SIGNALBOX_RATE_LIMIT: "7",
      SIGNALBOX_READ_LISTEN: "off",
    };
    const flags = "--rate-limit 8 --backup-every 90s --external-checkpoints";
    const proxies = "--trust-proxy 10.0.0.1 --trust-proxy 10.0.0.2";
    expect(await settingsOf(`${flags} ${proxies}`.split(" "), env)).toMatchObject({
      "--listen": ["127.0.0.1:9000", "environment"],
      "--console-listen": ["off", "environment"],
      "--read-listen": ["off", "environment"],
      "--rate-limit": ["8", "flag"],
      "--backup-every": ["90s", "flag"],
      "--external-checkpoints": ["on", "flag"],
      "--trust-proxy": ["10.0.0.1,10.0.0.2", "flag"],
      "--data": ["./data", "default"],
      "--stop-timeout": ["10s", "default"],
      "--tls-key": [null, "default"],
    });
  });

  test("in the environment means what a flag does", () => {
    const env = {
      SIGNALBOX_LISTEN: "127.0.0.1:9000",
      SIGNALBOX_PUBLIC_URL: "https://signals.example.com/",
      SIGNALBOX_TRUST_PROXY: "192.0.2.1, 127.0.0.1",
      SIGNALBOX_RATE_LIMIT: "1",
      SIGNALBOX_STOP_TIMEOUT: "1ms",
      SIGNALBOX_QUICKSTART: "1",
    };
    Object.assign(process.env, env);
    onCleanup(() => Object.keys(env).forEach((name) => delete process.env[name]));
    const serve = serveCommand().action(() => {});
    serve.parse([], { from: "user" });
    expect(readConfig(serve.opts<ServeOptions>(), serve)).toMatchObject({
      listen: { host: "127.0.0.1", port: 9_000 },
      publicUrl: "https://signals.example.com",
      trustedProxies: ["192.0.2.1", "127.0.0.1"],
      rateLimitPerS: 1,
      stopTimeoutMs: 1,
      quickstart: true,
    });
  });

  test.each(["0", "no", "off", "false", ""])(
    "%j in the environment turns a switch off",
    async (value) => {
      const env = { SIGNALBOX_QUICKSTART: value };
      expect(await settingsOf([], env)).toMatchObject({ "--quickstart": ["off", "environment"] });
    },
  );

  test("has a row for each setting", async () => {
    const flags = Object.values(settings).map((one) => one.flags.split(" ", 1)[0]);
    expect(Object.keys(await settingsOf([]))).toEqual(flags as string[]);
  });
});

/** Names, permissions, sizes and times of everything in a folder. */
function stateOf(folder: string): unknown {
  return readdirSync(folder, { recursive: true })
    .map(String)
    .toSorted()
    .map((name) => {
      const stats = statSync(join(folder, name));
      return [name, stats.mode, stats.size, stats.isFile() ? stats.mtimeMs : null];
    });
}

function check(dataDir: string, args: readonly string[]) {
  return cliHere(["serve", "--check", "--data", dataDir, ...args]);
}

describe("serve --check", () => {
  const valid = { code: 0, stdout: "", stderr: expect.stringContaining("configuration is valid") };

  test("says what serve would say, and creates nothing", async () => {
    const cwd = temporaryFolder();
    const { certFile } = writeCertificate(cwd, await makeCertificate("one"));
    const other = writeCertificate(temporaryFolder(), await makeCertificate("other"));
    const { url } = await startServe();
    const options = { cwd, env: { SIGNALBOX_LISTEN: "127.0.0.1:0" } };
    mkdirSync(join(cwd, "mine"));
    writeFileSync(join(cwd, "mine", "letter.txt"), "");
    mkdirSync(join(cwd, "foreign"), { mode: 0o700 });
    writeFileSync(join(cwd, "foreign", "signalbox.db"), "x".repeat(4_096));
    for (const args of [
      "--listen 0.0.0.0:8080",
      `--listen ${url.slice("http://".length)}`,
      "--listen 127.0.0.1:7001 --console-listen 127.0.0.1:7001",
      "--listen 192.0.2.1:7001 --trust-proxy 10.0.0.1",
      "--tls-cert no.pem --tls-key no.pem",
      `--tls-cert ${certFile} --tls-key ${other.keyFile}`,
      "--tls-cert only.pem",
      `--data ${"x".repeat(110)}`,
      "--data mine",
      "--data foreign",
      "--data mine/letter.txt",
      "--data d --backup-keep 3",
      "--data mine --backup-dir mine",
      "--log-level loud",
    ]) {
      const before = stateOf(cwd);
      const found = await cliHere(["serve", "--check", ...args.split(" ")], options);
      expect(stateOf(cwd)).toEqual(before);
      const expected = await cliHere(["serve", ...args.split(" ")], options);
      expect({ args, ...found }).toEqual({ args, ...expected });
      expect(found.code).toBeGreaterThan(0);
    }
  });

  test("accepts what serve would accept, and changes nothing", async () => {
    const folder = temporaryFolder();
    const dataDir = join(folder, "new", "data");
    expect(await check(dataDir, ["--listen", "127.0.0.1:0"])).toEqual(valid);
    expect(readdirSync(folder)).toEqual([]);
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    await mintKey(dataDir);
    chmodSync(dataDir, 0o755);
    const before = stateOf(folder);
    expect(await check(dataDir, ["--listen", "127.0.0.1:0"])).toEqual(valid);
    expect(stateOf(folder)).toEqual(before);
  });

  test("takes the ports of the running server of the same folder as free, and no others", async () => {
    const { dataDir, url } = await startServe();
    const listen = ["--listen", url.slice("http://".length)];
    const { stderr, code } = await check(dataDir, listen);
    expect(stderr).toContain(`A server uses ${dataDir} now: restart it`);
    expect(code).toBe(0);
    const elsewhere = await check(join(temporaryFolder(), "data"), listen);
    expect(elsewhere.stderr).toContain("is in use by another program");
    expect(elsewhere.code).toBe(1);
  });

  test("refuses a folder for backups that cannot be written to", async () => {
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    const args = ["--listen", "127.0.0.1:0", "--backup-dir", join(file, "b")];
    const { code, stderr } = await check(join(temporaryFolder(), "data"), args);
    expect(stderr).toContain("cannot be used for backups (ENOTDIR): name one");
    expect(code).toBe(1);
  });
});
