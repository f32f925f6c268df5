import { Database } from "bun:sqlite";
import { describe, expect, test, setDefaultTimeout } from "bun:test";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { currentSchema, schemaVersion } from "../src/store/sqlite/migrate.ts";
import { makeCertificate, presentedName, writeCertificate } from "./_certificates.ts";
import { cli, freePort, mintKey, sendHalf, startServe } from "./_cli.ts";
import { query, signal, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

const KEY = /^sbk_[0-9a-f]{64}$/;
const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/;

interface KeyJson {
  readonly id: string;
  readonly desk: string;
  readonly label: string | null;
  readonly last4: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
  readonly state: string;
}

async function listKeys(dataDir: string): Promise<KeyJson[]> {
  const { stdout } = await cli(["key", "list", "--json", "--data", dataDir]);
  return JSON.parse(stdout) as KeyJson[];
}

async function post(url: string, key: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/v1/signals`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json", ...headers },
    body: JSON.stringify(signal),
  });
  await response.text();
  return response.status;
}

describe("help", () => {
  const levels = [
    [],
    ["serve"],
    ["desk"],
    ["desk", "create"],
    ["desk", "limit"],
    ["desk", "list"],
    ["desk", "invite"],
    ["desk", "members"],
    ["desk", "remove-member"],
    ["desk", "reset"],
    ["audit"],
    ["key"],
    ["key", "mint"],
    ["key", "list"],
    ["key", "revoke"],
    ["key", "rotate"],
    ["healthcheck"],
    ["version"],
  ];
  test.each(levels.map((level) => [level.join(" ") || "the program", level] as const))(
    "%s has usage and an example",
    async (_name, level) => {
      const { code, stdout, stderr } = await cli([...level, "--help"]);
      expect(stdout).toContain(`Usage: ${["signalbox", ...level].join(" ")}`);
      expect(stdout).toContain("Example");
      const [, examples = ""] = stdout.split(/^Examples?:$/m);
      expect(examples).toContain(["signalbox", ...level].join(" "));
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    },
  );

  test("serve names each flag's environment variable", async () => {
    const { stdout } = await cli(["serve", "--help"]);
    const flags = [...stdout.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, flag]) => flag ?? "");
    expect(flags.length).toBeGreaterThanOrEqual(11);
    const text = stdout.replaceAll(/\s+/g, " ");
    for (const flag of flags) {
      expect(text).toContain(`env: SIGNALBOX_${flag.toUpperCase().replaceAll("-", "_")}`);
    }
  });
});

test("version is on stdout, as a command and as a flag", async () => {
  expect(await cli(["version"])).toEqual({
    code: 0,
    stdout: `signalbox ${packageJson.version}\n`,
    stderr: "",
  });
  expect((await cli(["--version"])).stdout).toBe(`${packageJson.version}\n`);
});

describe("usage errors end with code 2 and say what to type", () => {
  const cases: [name: string, args: string[], says: string][] = [
    ["no command", [], "Usage: signalbox"],
    ["unknown command", ["sevre"], "(Did you mean serve?)"],
    ["unknown subcommand", ["key", "mnt"], "(Did you mean mint?)"],
    ["subcommand missing", ["desk"], "Usage: signalbox desk"],
    ["unknown option", ["desk", "list", "--jsn"], "(Did you mean --json?)"],
    ["argument missing", ["key", "revoke"], "signalbox key revoke --help"],
    ["argument too many", ["desk", "list", "alpha"], "signalbox desk list --help"],
    ["required option missing", ["key", "mint"], "signalbox key mint --desk alpha"],
    ["value of an option missing", ["key", "mint", "--desk"], "--desk <name>"],
    ["span without a unit", ["key", "mint", "--desk", "a", "--expires", "90"], "such as 90d"],
    ["span of an unknown unit", ["key", "mint", "--desk", "a", "--expires", "3x"], "such as 90d"],
    ["span below zero", ["key", "rotate", "X", "--overlap", "-1h"], "such as 90d"],
    ["lifetime of nothing", ["key", "mint", "--desk", "a", "--expires", "0d"], "or never"],
    ["successor without a lifetime", ["key", "rotate", "X", "--expires", "0d"], "or never"],
    ["backups kept nowhere", ["serve", "--backup-keep", "3"], "--backup-dir DIR"],
    ["backups made nowhere", ["serve", "--backup-every", "1h"], "--backup-dir DIR"],
    ["span of ages", ["key", "mint", "--desk", "a", "--expires", "9999y"], "such as 90d"],
    ["span too long", ["key", "mint", "--desk", "a", "--expires", "99999999d"], "at most 100y"],
    ["overlap without a unit", ["key", "rotate", "X", "--overlap", "0"], "write 0s"],
    ["stop timeout without a unit", ["serve", "--stop-timeout", "5"], "write 5s"],
    ["count too large", ["desk", "limit", "a", "--keys", "1000000000"], "at most 999999999"],
    ["port too high", ["serve", "--listen", "127.0.0.1:99999"], "from 0 to 65535"],
    ["address without a port", ["serve", "--listen", "127.0.0.1"], "127.0.0.1:8080"],
    ["port out of range", ["serve", "--listen", "127.0.0.1:65536"], "127.0.0.1:8080"],
    ["IPv6 without brackets", ["serve", "--listen", "::1:8080"], "[::1]:8080"],
    ["bad operations address", ["serve", "--ops-listen", "x"], "127.0.0.1:8080"],
    ["bad rate", ["serve", "--rate-limit", "fast"], "whole number"],
    ["bad stop timeout", ["serve", "--stop-timeout", "soon"], "such as 90d"],
    ["bad log level", ["serve", "--log-level", "loud"], "debug, info, warn, error, silent"],
    ["bad public URL", ["serve", "--public-url", "signals"], "https://signals.example.com"],
    ["key file without certificate", ["serve", "--tls-key", "k.pem"], "--tls-cert FILE"],
    ["certificate without key file", ["serve", "--tls-cert", "c.pem"], "--tls-key FILE"],
    ["bad address range", ["serve", "--trust-proxy", "10.0.0.0/33"], "10.0.0.0/8"],
    ["address of a server that is none", ["healthcheck", "not a url"], "http://"],
  ];
  test.each(cases)("%s", async (_name, args, says) => {
    const { code, stdout, stderr } = await cli(args);
    expect(stderr).toContain(says);
    expect(stderr).not.toContain("    at ");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  test("an environment variable is held to the same rules, and named", async () => {
    const { code, stderr } = await cli(["serve"], { env: { SIGNALBOX_LISTEN: "nowhere" } });
    expect(stderr).toContain("SIGNALBOX_LISTEN");
    expect(code).toBe(2);
  });
});

/** Null if another program has the port. */
function occupy(port: number) {
  try {
    return Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } });
  } catch {
    return null;
  }
}

/** Code 1, nothing on stdout, and one line on stderr. */
async function expectFailure(args: string[], says: string | RegExp): Promise<void> {
  const { code, stdout, stderr } = await cli(args);
  expect(stderr).toMatch(/^signalbox: [^\n]+\n$/);
  expect(stderr).toMatch(says);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
}

describe("failures end with code 1 and one sentence that says what to type", () => {
  test("an unknown desk, where there is none", async () => {
    const { dataDir } = await startServe();
    await expectFailure(
      ["key", "mint", "--desk", "alpha", "--data", dataDir],
      `create it with: signalbox desk create alpha --data ${dataDir}`,
    );
  });

  test("an unknown desk, with the nearest name", async () => {
    const dataDir = temporaryFolder();
    for (const desk of ["alpha", "beta", "gamma"]) {
      await cli(["desk", "create", desk, "--data", dataDir]);
    }
    const says = `no desk "gama"; the nearest name is "gamma": see them with: signalbox desk list --data ${dataDir}`;
    await expectFailure(["key", "mint", "--desk", "gama", "--data", dataDir], says);
    await expectFailure(["key", "list", "--desk", "gama", "--data", dataDir], says);
    await expectFailure(
      ["key", "list", "--desk", "fund-9", "--data", dataDir],
      'There is no desk "fund-9": see them with: signalbox desk list',
    );
  });

  test("a desk that is there already", async () => {
    const dataDir = temporaryFolder();
    await cli(["desk", "create", "alpha", "--data", dataDir]);
    await expectFailure(
      ["desk", "create", "alpha", "--data", dataDir],
      'There is a desk "alpha" already: mint a key for it with: signalbox key mint --desk alpha',
    );
  });

  test("a name that no desk can have, with one that it can", async () => {
    await expectFailure(["desk", "create", "Desk One", "--data", temporaryFolder()], "desk-one");
  });

  test("a label that cannot be shown", async () => {
    const dataDir = temporaryFolder();
    await cli(["desk", "create", "alpha", "--data", dataDir]);
    for (const label of ["", "a\nb", "x".repeat(101)]) {
      const args = ["key", "mint", "--desk", "alpha", `--label=${label}`, "--data", dataDir];
      await expectFailure(args, 'such as "bot 7"');
    }
  });

  test("an unknown key id", async () => {
    const dataDir = temporaryFolder();
    await mintKey(dataDir);
    for (const command of ["revoke", "rotate"]) {
      const args = ["key", command, "01K5QZ8F3V9X2M7T4B6N1C0D8E", "--data", dataDir];
      await expectFailure(args, "see the ids with: signalbox key list");
    }
  });

  test("a key instead of its id", async () => {
    const dataDir = temporaryFolder();
    const { key } = await mintKey(dataDir);
    for (const command of ["revoke", "rotate"]) {
      const args = ["key", command, key, "--data", dataDir];
      const says = "This is a key, and its id is needed: see the ids with: signalbox key list";
      await expectFailure(args, says);
      expect((await cli(args)).stderr).not.toContain("sbk_");
    }
  });

  test("rotating a key that is revoked", async () => {
    const dataDir = temporaryFolder();
    const { id } = await mintKey(dataDir);
    await cli(["key", "revoke", id, "--data", dataDir]);
    const args = ["key", "rotate", id, "--data", dataDir];
    await expectFailure(args, /is revoked.* mint a new one with: signalbox key mint --desk alpha/);
  });

  test("a data folder that is a file", async () => {
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    for (const dataDir of [file, join(file, "below")]) {
      for (const command of [
        "desk list",
        "desk create a",
        "verify",
        "backup x.db",
        "healthcheck",
      ]) {
        const args = [...command.split(" "), "--data", dataDir];
        await expectFailure(args, `${file} is a file, not a folder: name the folder`);
      }
    }
    const serve = ["serve", "--listen", "127.0.0.1:0", "--data", file];
    await expectFailure(serve, `${file} is a file, not a folder`);
  });

  test("a database of a newer version", async () => {
    const dataDir = temporaryFolder();
    await cli(["desk", "create", "alpha", "--data", dataDir]);
    const db = new Database(join(dataDir, "signalbox.db"));
    db.run("PRAGMA user_version = 99");
    db.close();
    const ours = schemaVersion(currentSchema);
    const says = `newer signalbox (database version 99; this one knows ${ours}): run that version`;
    await expectFailure(
      ["key", "list", "--data", dataDir],
      /newer signalbox \(database version 99/,
    );
    expect((await cli(["serve", "--listen", "127.0.0.1:0", "--data", dataDir])).stderr).toContain(
      says,
    );
  });

  test("a file that is somebody else's", async () => {
    const dataDir = temporaryFolder();
    writeFileSync(join(dataDir, "signalbox.db"), "dear diary");
    await expectFailure(
      ["key", "list", "--data", dataDir],
      "is not a Signalbox database, and was left as it is",
    );
    expect(readFileSync(join(dataDir, "signalbox.db"), "utf8")).toBe("dear diary");
  });

  test("a port in use, with the flag to type and a port that is free", async () => {
    const { url } = await startServe();
    const { host, port } = new URL(url);
    // Neither the next port, which is the console's, nor the one after it, which another program has.
    const [next, afterNext] = [Number(port) + 1, Number(port) + 2];
    const blocker = occupy(afterNext);
    try {
      const dataDir = join(temporaryFolder(), "d");
      const others = ["--console-listen", `127.0.0.1:${next}`, "--data", dataDir];
      const { code, stderr } = await cli(["serve", "--listen", host, ...others]);
      const hint =
        /^signalbox: (\S+) is in use by another program: stop it, or choose another port, such as --listen 127\.0\.0\.1:(\d+)\.\n$/;
      const [, busy, free] = hint.exec(stderr) ?? [];
      expect({ code, busy, stderr }).toEqual({ code: 1, busy: host, stderr });
      expect(Number(free)).toBeGreaterThan(afterNext);
    } finally {
      blocker?.stop(true);
    }
  });

  test("a first start on a port in use creates nothing", async () => {
    const { url } = await startServe();
    const { host } = new URL(url);
    const dataDir = join(temporaryFolder(), "d");
    for (const flags of [
      ["--listen", host],
      ["--listen", "127.0.0.1:0", "--console-listen", host],
      ["--listen", "127.0.0.1:0", "--ops-listen", host],
    ]) {
      await expectFailure(["serve", "--data", dataDir, ...flags], "is in use by another program");
      expect(existsSync(dataDir)).toBe(false);
    }
  });

  test("serve in a folder with other files", async () => {
    const home = temporaryFolder();
    writeFileSync(join(home, "letter.txt"), "dear");
    chmodSync(home, 0o755);
    const args = ["serve", "--listen", "127.0.0.1:0", "--data", home];
    await expectFailure(args, `The folder ${home} has other files in it`);
    expect(readdirSync(home)).toEqual(["letter.txt"]);
    expect(statSync(home).mode & 0o777).toBe(0o755);
  });

  test("a console's or an operations port in use, with its own flag", async () => {
    const { url } = await startServe();
    const { host } = new URL(url);
    for (const [flag, says] of [
      ["--ops-listen", /such as --ops-listen 127\.0\.0\.1:\d+\.$/m],
      [
        "--console-listen",
        /such as --console-listen 127\.0\.0\.1:\d+, or none with --console-listen off\.$/m,
      ],
    ] as const) {
      const where = ["--data", join(temporaryFolder(), "d"), "--listen", "127.0.0.1:0"];
      await expectFailure(["serve", ...where, flag, host], says);
    }
  });

  test("an address that is not of this machine", async () => {
    for (const host of ["192.0.2.1", "no-such-host.invalid"]) {
      await expectFailure(
        ["serve", "--listen", `${host}:18080`, "--trust-proxy", "192.0.2.2", "--data", "d"],
        `${host}:18080 is not an address of this machine: try 127.0.0.1:18080`,
      );
    }
  });

  test("a folder whose path is too long for a socket", async () => {
    const dataDir = join(temporaryFolder(), "x".repeat(100));
    await expectFailure(
      ["serve", "--listen", "127.0.0.1:0", "--data", dataDir],
      /too long for a socket .* --data DIR/,
    );
  });

  test("an address that would carry keys in the clear", async () => {
    await expectFailure(
      ["serve", "--listen", "0.0.0.0:8080"],
      /--tls-cert FILE --tls-key FILE.*--trust-proxy CIDR.*127.0.0.1:8080/,
    );
  });

  test("healthcheck where no server is", async () => {
    await expectFailure(["healthcheck", "--data", temporaryFolder()], "signalbox serve");
    const url = `http://127.0.0.1:${await freePort()}`;
    await expectFailure(["healthcheck", url], `No server answers at ${url}`);
  });

  test("healthcheck of something that is not the operations address", async () => {
    const { url } = await startServe();
    await expectFailure(["healthcheck", url], "--ops-listen");
    const other = Bun.serve({ port: 0, fetch: () => new Response("<html>", { status: 200 }) });
    try {
      await expectFailure(["healthcheck", `http://127.0.0.1:${other.port}`], "--ops-listen");
    } finally {
      await other.stop(true);
    }
  });
});

describe("desks", () => {
  test("are created and listed, for people and for programs", async () => {
    const { dataDir } = await startServe();
    const empty = await cli(["desk", "list", "--data", dataDir]);
    expect(empty).toMatchObject({ code: 0, stdout: "" });
    expect(empty.stderr).toContain("signalbox desk create NAME");
    expect((await cli(["desk", "list", "--json", "--data", dataDir])).stdout).toBe("[]\n");
    const before = Date.now();
    const created = await cli(["desk", "create", "beta", "--data", dataDir]);
    expect(created).toMatchObject({ code: 0, stdout: "" });
    expect(created.stderr).toContain("signalbox key mint --desk beta");
    await cli(["desk", "create", "alpha", "--data", dataDir]);
    const { stdout } = await cli(["desk", "list", "--json", "--data", dataDir]);
    const desks = JSON.parse(stdout) as { name: string; created_at: number }[];
    expect(desks.map((desk) => desk.name)).toEqual(["alpha", "beta"]);
    for (const { created_at } of desks) {
      expect(created_at).toBeWithin(before, Date.now() + 1);
    }
    const table = (await cli(["desk", "list", "--data", dataDir])).stdout;
    expect(table).toMatch(/^NAME .*\nalpha .*\nbeta .*\n$/);
  });

  test("--if-missing succeeds for a desk that is there, and changes nothing", async () => {
    const dataDir = temporaryFolder();
    const args = ["desk", "create", "alpha", "--if-missing", "--data", dataDir];
    const path = join(dataDir, "signalbox.db");
    const first = await cli(args);
    expect(first).toMatchObject({ code: 0, stdout: "" });
    expect(first.stderr).toContain(`Created the database ${path}.\n`);
    const before = query(dataDir, "SELECT * FROM desks");
    const again = await cli(args);
    expect(again.code).toBe(0);
    expect(again.stderr).toContain("already exists");
    expect(again.stderr).not.toContain(path);
    expect(query(dataDir, "SELECT * FROM desks")).toEqual(before);
  });
});

describe("keys", () => {
  test("mint: stdout is the key and nothing else", async () => {
    const dataDir = temporaryFolder();
    await cli(["desk", "create", "alpha", "--data", dataDir]);
    const { code, stdout } = await cli(["key", "mint", "--desk", "alpha", "--data", dataDir]);
    expect(code).toBe(0);
    expect(stdout.endsWith("\n")).toBe(true);
    expect(stdout.slice(0, -1)).toMatch(KEY);
  });

  test("mint --json has the key with its record", async () => {
    const dataDir = temporaryFolder();
    await cli(["desk", "create", "alpha", "--data", dataDir]);
    const { stdout } = await cli(
      ["key", "mint", "--desk", "alpha", "--label", "bot 7", "--expires", "90d", "--json"],
      { env: { SIGNALBOX_DATA: dataDir } },
    );
    const { key, ...record } = JSON.parse(stdout) as KeyJson & { key: string };
    expect(key).toMatch(KEY);
    expect(record).toEqual({
      id: expect.stringMatching(ULID),
      desk: "alpha",
      label: "bot 7",
      last4: key.slice(-4),
      created_at: expect.any(Number),
      expires_at: record.created_at + 90 * 86_400_000,
      last_used_at: null,
      revoked_at: null,
      state: "active",
    });
    expect(await listKeys(dataDir)).toEqual([record]);
  });

  test("list --json is an array of records with these names and no key", async () => {
    const dataDir = temporaryFolder();
    const { key } = await mintKey(dataDir, "alpha");
    await mintKey(dataDir, "beta");
    const { stdout } = await cli(["key", "list", "--json", "--data", dataDir]);
    for (const record of JSON.parse(stdout) as object[]) {
      expect(Object.keys(record)).toEqual([
        "id",
        "desk",
        "label",
        "last4",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
        "state",
      ]);
    }
    expect(stdout).not.toContain("sbk_");
    expect(stdout).not.toContain(key.slice(4, -4));
    const ofBeta = await cli(["key", "list", "--desk", "beta", "--json", "--data", dataDir]);
    expect((JSON.parse(ofBeta.stdout) as KeyJson[]).map((record) => record.desk)).toEqual(["beta"]);
  });

  test("list is a table for people, with the state of each key", async () => {
    const { dataDir } = await startServe();
    const none = await cli(["key", "list", "--data", dataDir]);
    expect(none.stderr).toContain("signalbox key mint --desk NAME");
    const first = await mintKey(dataDir);
    const second = await mintKey(dataDir);
    await cli(["key", "mint", "--desk", "alpha", "--expires", "1s", "--data", dataDir]);
    await cli(["key", "revoke", first.id, "--data", dataDir]);
    let stdout = "";
    while (!stdout.includes("expired")) {
      ({ stdout } = await cli(["key", "list", "--data", dataDir]));
    }
    const [heading, ...rows] = stdout.trimEnd().split("\n");
    expect(heading).toMatch(/^ID +DESK +LABEL +LAST 4 +CREATED +EXPIRES +LAST USED +STATE$/);
    const states = Object.fromEntries(
      rows.map((row) => [row.slice(0, 26), row.split(/ +/).at(-1)] as const),
    );
    expect(states).toMatchObject({ [first.id]: "revoked", [second.id]: "active" });
    expect(new Set(Object.values(states))).toEqual(new Set(["active", "expired", "revoked"]));
  });

  test("revoke is idempotent, and tells when it was", async () => {
    const dataDir = temporaryFolder();
    const { id } = await mintKey(dataDir);
    const first = await cli(["key", "revoke", id, "--json", "--data", dataDir]);
    expect(first.code).toBe(0);
    expect(JSON.parse(first.stdout)).toMatchObject({ id, state: "revoked" });
    const [before] = await listKeys(dataDir);
    const second = await cli(["key", "revoke", id.toLowerCase(), "--data", dataDir]);
    expect(second.code).toBe(0);
    expect(second.stderr).toContain("was already revoked");
    expect(await listKeys(dataDir)).toEqual(before === undefined ? [] : [before]);
  });

  test("rotate mints a successor, lets the old one expire, and says when that was last used", async () => {
    const server = await startServe();
    const { dataDir } = server;
    await cli(["desk", "create", "alpha", "--data", dataDir]);
    const args = ["--desk", "alpha", "--label", "bot 7", "--data", dataDir];
    const { stdout } = await cli(["key", "mint", ...args]);
    const oldKey = stdout.trim();
    const [unused] = await listKeys(dataDir);
    const before = Date.now();
    const rotated = await cli(["key", "rotate", unused?.id ?? "", "--data", dataDir]);
    expect(rotated.code).toBe(0);
    expect(rotated.stdout.slice(0, -1)).toMatch(KEY);
    expect(rotated.stderr).toContain("has not been used");
    const [old, successor] = await listKeys(dataDir);
    expect(old?.expires_at).toBeWithin(before + 86_400_000, Date.now() + 86_400_001);
    expect(successor).toMatchObject({ desk: "alpha", label: "bot 7", expires_at: null });

    expect(await post(server.url, oldKey)).toBe(201);
    expect(await post(server.url, rotated.stdout.trim())).toBe(201);
    const rotate = (id = "") => cli(["key", "rotate", id, "--overlap", "0s", "--data", dataDir]);
    const refused = await rotate(old?.id);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain(
      `its successor is ${successor?.id}: rotate that one with: signalbox key rotate ${successor?.id} --data ${dataDir}\n`,
    );
    const again = await rotate(successor?.id);
    const { last_used_at } = (await listKeys(dataDir))[1] ?? {};
    const shown = new Date(last_used_at ?? 0).toISOString().slice(0, 19).replace("T", " ");
    expect(again.stderr).toContain(`was last used at ${shown}Z`);
    expect(await post(server.url, rotated.stdout.trim())).toBe(401);
    expect(await post(server.url, again.stdout.trim())).toBe(201);
  });

  test("rotate gives the successor the old key's lifetime, unless --expires says otherwise", async () => {
    const dataDir = temporaryFolder();
    await cli(["desk", "create", "alpha", "--data", dataDir]);
    const mint = ["key", "mint", "--desk", "alpha", "--expires", "90d", "--json"];
    let { id } = JSON.parse((await cli([...mint, "--data", dataDir])).stdout) as KeyJson;
    const cases = [
      [[], 90],
      [["--expires", "30d"], 30],
      [[], 30],
      [["--expires", "never"], null],
    ] as const;
    for (const [args, days] of cases) {
      const rotate = ["key", "rotate", id, ...args, "--json", "--data", dataDir];
      const { stdout, stderr } = await cli(rotate);
      const successor = JSON.parse(stdout) as KeyJson;
      const { created_at, expires_at } = successor;
      expect(expires_at).toBe(days === null ? null : created_at + days * 86_400_000);
      ({ id } = successor);
      expect(stderr).toContain(days === null ? "does not expire" : "expires at");
    }
  });

  test("a key's plaintext is nowhere in the data folder", async () => {
    const server = await startServe();
    const { dataDir } = server;
    const { key, id } = await mintKey(dataDir);
    expect(await post(server.url, key)).toBe(201);
    const rotated = await cli(["key", "rotate", id, "--data", dataDir]);
    const keys = [key, rotated.stdout.trim()];
    const secrets = keys.flatMap((text) => [
      Buffer.from(text.slice(4)),
      Buffer.from(text.slice(4), "hex"),
    ]);
    const check = (): void => {
      const files = readdirSync(dataDir).filter((name) => !name.endsWith(".sock"));
      expect(files).toContain("signalbox.db");
      for (const file of files) {
        const bytes = readFileSync(join(dataDir, file));
        for (const secret of secrets) expect(bytes.includes(secret)).toBe(false);
      }
    };
    check();
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    check();
    expect(server.output.stderr).not.toContain("sbk_");
  });

  const mistakes: [string, (key: string, id: string) => string[]][] = [
    ["the id to revoke", (key) => ["key", "revoke", key]],
    ["the id to rotate", (key) => ["key", "rotate", key]],
    ["a desk's name to list", (key) => ["key", "list", "--desk", key]],
    ["a desk's name to mint for", (key) => ["key", "mint", "--desk", key]],
    ["a second argument", (key, id) => ["key", "revoke", id, key]],
  ];
  test.each(mistakes)("a key pasted by mistake as %s is not echoed", async (_place, args) => {
    const dataDir = temporaryFolder();
    const { key, id } = await mintKey(dataDir);
    const { code, stdout, stderr } = await cli([...args(key, id), "--data", dataDir]);
    expect(code).not.toBe(0);
    expect(stdout + stderr).not.toContain(key.slice(4));
  });
});

async function runAll(dataDir: string): Promise<void> {
  const run = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli([...args, "--data", dataDir]);
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr });
    return stdout;
  };
  await run("desk", "create", "alpha");
  await run("desk", "create", "alpha", "--if-missing");
  await run("desk", "list");
  const { id } = JSON.parse(await run("key", "mint", "--desk", "alpha", "--json")) as KeyJson;
  await run("key", "list", "--desk", "alpha");
  await run("key", "rotate", id, "--overlap", "1h", "--expires", "90d");
  await run("key", "revoke", id);
  await run("desk", "invite", "alpha", "--email", "alice@example.com");
  await run("desk", "reset", "alpha", "alice@example.com");
  await run("desk", "members", "alpha");
  await run("desk", "remove-member", "alpha", "alice@example.com");
  await run("audit");
}

describe("every command works", () => {
  test("before the first start of a server", async () => {
    await runAll(join(temporaryFolder(), "not", "there", "yet"));
  });

  test("while a server runs", async () => {
    const { dataDir } = await startServe();
    await runAll(dataDir);
  });
});

describe("healthcheck", () => {
  test("says each check of a running server, by its folder and by its address", async () => {
    const port = await freePort();
    const { dataDir } = await startServe(["--ops-listen", `127.0.0.1:${port}`]);
    for (const where of [["--data", dataDir], [`http://127.0.0.1:${port}`]]) {
      const { code, stdout } = await cli(["healthcheck", ...where]);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^ok\nwriter: ok .*\ndisk: ok .*\ncertificate: ok .*\n$/);
      expect(await cli(["healthcheck", "--live", ...where])).toMatchObject({
        code: 0,
        stdout: "ok\n",
      });
    }
  });

  test("fails for a server that cannot store", async () => {
    const folder = temporaryFolder();
    const past = new Date(Date.now() - 86_400_000);
    const expired = await makeCertificate("old", { from: new Date(0), to: past });
    const { certFile, keyFile } = writeCertificate(folder, expired);
    const { dataDir } = await startServe(["--tls-cert", certFile, "--tls-key", keyFile]);
    const { code, stdout, stderr } = await cli(["healthcheck", "--data", dataDir]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^failing\n.*certificate: failing \(expired at /s);
    expect(stderr).toContain("not ready");
  });
});

async function settings() {
  const ports = { listen: await freePort(), ops: await freePort() };
  return {
    dataDir: join(temporaryFolder(), "data"),
    url: `http://127.0.0.1:${ports.listen}`,
    opsUrl: `http://127.0.0.1:${ports.ops}`,
    listen: `127.0.0.1:${ports.listen}`,
    opsListen: `127.0.0.1:${ports.ops}`,
  };
}

async function environment() {
  const set = await settings();
  const env = {
    SIGNALBOX_DATA: set.dataDir,
    SIGNALBOX_LISTEN: set.listen,
    SIGNALBOX_OPS_LISTEN: set.opsListen,
    SIGNALBOX_PUBLIC_URL: "https://environment.example.com",
    SIGNALBOX_TRUST_PROXY: "192.0.2.1, 127.0.0.1",
    SIGNALBOX_RATE_LIMIT: "1",
    SIGNALBOX_STOP_TIMEOUT: "1ms",
    SIGNALBOX_LOG_LEVEL: "debug",
    SIGNALBOX_QUICKSTART: "1",
  };
  return { ...set, env };
}

describe("serve's settings", () => {
  test("come from the environment", async () => {
    const { env, url, opsUrl, dataDir } = await environment();
    const overHttps = { "X-Forwarded-Proto": "https" };
    const server = await startServe([], { env, bare: true });
    const key = /sbk_[0-9a-f]{64}/.exec(server.output.stdout)?.[0] ?? "";
    expect(query(dataDir, "SELECT name FROM desks")).toEqual([{ name: "demo" }]);
    expect(await (await fetch(`${url}/openapi.yaml`, { headers: overHttps })).text()).toContain(
      "https://environment.example.com",
    );
    expect((await fetch(`${opsUrl}/healthz`)).status).toBe(200);
    expect(await post(url, key, { "X-Forwarded-Proto": "http" })).toBe(403);
    const statuses = [];
    for (let count = 0; count < 8; count++) statuses.push(await post(url, key, overHttps));
    expect(statuses).toContain(429);
    await server.logged('"level":"debug"');
    const other = await mintKey(dataDir, "other");
    const half = await sendHalf(url, other.key, overHttps);
    expect(await post(url, other.key, overHttps)).toBe(201);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    await half.closed;
    expect(server.output.stderr).toContain("cut the connections");
  });

  test("come from a flag where it and the environment are given", async () => {
    const { env } = await environment();
    const { url, opsUrl, dataDir, listen, opsListen } = await settings();
    const args = Object.entries({
      "--data": dataDir,
      "--listen": listen,
      "--ops-listen": opsListen,
      "--public-url": "https://flag.example.com/",
      "--trust-proxy": "192.0.2.1",
      "--rate-limit": "0",
      "--stop-timeout": "1m",
      "--log-level": "info",
    }).flat();
    const server = await startServe(args, { env, bare: true });
    expect(server.url).toBe("https://flag.example.com");
    const key = /sbk_[0-9a-f]{64}/.exec(server.output.stdout)?.[0] ?? "";
    expect(query(dataDir, "SELECT name FROM desks")).toEqual([{ name: "demo" }]);
    expect((await fetch(`${opsUrl}/healthz`)).status).toBe(200);
    for (let count = 0; count < 8; count++) {
      expect(await post(url, key, { "X-Forwarded-Proto": "http" })).toBe(201);
    }
    const half = await sendHalf(url, key);
    await post(url, key);
    server.kill("SIGTERM");
    await server.logged("stopping");
    await half.finish();
    expect(await half.closed).toContain("HTTP/1.1 201");
    expect(await server.exited).toBe(0);
    expect(server.output.stderr).not.toContain('"level":"debug"');
  });

  test("name the certificate, in the environment and by flags", async () => {
    const [first, second] = [temporaryFolder(), temporaryFolder()];
    const inEnvironment = writeCertificate(first, await makeCertificate("environment"));
    const byFlag = writeCertificate(second, await makeCertificate("flag"));
    const env = {
      SIGNALBOX_TLS_CERT: inEnvironment.certFile,
      SIGNALBOX_TLS_KEY: inEnvironment.keyFile,
    };
    const one = await startServe([], { env });
    expect(await presentedName(one.url)).toBe("environment");
    const other = await startServe(["--tls-cert", byFlag.certFile, "--tls-key", byFlag.keyFile], {
      env,
    });
    expect(await presentedName(other.url)).toBe("flag");
  });

  test.each(["0", "false", ""])("SIGNALBOX_QUICKSTART=%j is not a wish for it", async (value) => {
    const server = await startServe([], { env: { SIGNALBOX_QUICKSTART: value } });
    expect(query(server.dataDir, "SELECT name FROM desks")).toEqual([]);
  });

  test("--quickstart leaves a server alone that has a desk", async () => {
    const dataDir = temporaryFolder();
    await mintKey(dataDir);
    const server = await startServe(["--quickstart"], { dataDir });
    expect(query(dataDir, "SELECT name FROM desks")).toEqual([{ name: "alpha" }]);
    expect(server.output.stdout).toBe("");
    await server.logged(
      `desk \\"alpha\\" exists, and its keys cannot be shown again; mint another with: signalbox key mint --desk alpha --data ${dataDir}`,
    );
  });
});

test("without a desk the log says how to create one, and the log is JSON lines", async () => {
  const server = await startServe();
  expect(server.output.stderr).toContain("signalbox desk create NAME");
  for (const line of server.output.stderr.trimEnd().split("\n")) {
    expect(JSON.parse(line)).toMatchObject({ level: expect.any(String), time: expect.any(String) });
  }
});
