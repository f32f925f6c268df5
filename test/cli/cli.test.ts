/** What the command line prints, and its exit codes. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { makeCertificate, writeCertificate } from "../kit/certificates.ts";
import {
  cliHere,
  commandsOn,
  expectRefusal,
  expectUsageError,
  freePort,
  mintKey,
  startServe,
} from "../kit/cli.ts";
import { post, query, temporaryFolder } from "../kit/setup.ts";
import { startOnTerminal } from "../kit/terminal.ts";

const KEY = /^sbk_[0-9a-f]{64}\n$/;
const UNKNOWN_ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";

interface KeyJson {
  readonly id: string;
  readonly scope: string;
  readonly desk: string | null;
  readonly last4: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
  readonly limits: { readonly rate: number | null } | null;
}

async function statusOf(url: string, key: string) {
  return (await post(url, key.trim())).status;
}

function keysOn(dataDir: string) {
  const { run, json } = commandsOn(dataDir);
  return {
    run,
    json: <T = KeyJson>(...args: string[]) => json<T>(...args),
    listKeys: () => json<KeyJson[]>("key", "list"),
  };
}

/** Desks alpha and gamma; alpha has a key, a revoked key and one that was rotated. */
async function prepare() {
  const dataDir = temporaryFolder();
  const { id: rotated, key } = await mintKey(dataDir);
  const { id: revoked } = await mintKey(dataDir);
  await mintKey(dataDir, "gamma");
  const { run, json } = keysOn(dataDir);
  await run("key", "revoke", revoked);
  const successor = await json("key", "rotate", rotated);
  return { dataDir, key, ids: { rotated, revoked, successor: successor.id } };
}

describe("failures end with code 1 and one sentence that says what to type", () => {
  test("of commands on desks, keys and signals", async () => {
    const { dataDir, key, ids } = await prepare();
    const where = `--data ${dataDir}`;
    const unknown =
      "There is no key with this id, label or last four characters: list the keys with: signalbox key list";
    for (const [line, says] of [
      [
        "key mint --desk gama",
        `no desk "gama"; the nearest name is "gamma": list the desks with: signalbox desk list ${where}`,
      ],
      [
        "key list --desk fund-9",
        'There is no desk "fund-9": list the desks with: signalbox desk list',
      ],
      ["audit --desk alpa", 'the nearest name is "alpha"'],
      ["signals list --desk alpa", 'the nearest name is "alpha"'],
      ["desk create alpha", "mint a key for it with: signalbox key mint --desk alpha"],
      [`key revoke ${UNKNOWN_ID}`, unknown],
      [`key rotate ${UNKNOWN_ID}`, unknown],
      [`signals list --key ${UNKNOWN_ID}`, unknown],
      [`signals list --key ${key.slice(-4)} --desk gamma`, unknown],
      [`key rotate ${ids.revoked}`, "mint a new one with: signalbox key mint --desk alpha"],
      [
        `key rotate ${ids.rotated}`,
        `rotate that one with: signalbox key rotate ${ids.successor} ${where}`,
      ],
      [`signals show ${UNKNOWN_ID}`, "There is no signal with this id or client_signal_id"],
      [
        "signals show x --desk alpha",
        'Desk "alpha" has no signal with this id or client_signal_id',
      ],
      ["signals export --output /nowhere/x", "create it with: mkdir -p /nowhere"],
    ] as const) {
      await expectRefusal(`${line} ${where}`.split(" "), says);
    }
    const never = ["signals", "list", "--since", "1h", "--until", "2h", "--data", dataDir];
    await expectUsageError(never, "--until must be later than --since");
  });

  test("of a server's first desk", async () => {
    const { dataDir } = await startServe();
    await expectRefusal(
      ["key", "mint", "--desk", "alpha", "--data", dataDir],
      `create "alpha" with: signalbox desk create alpha --data ${dataDir}`,
    );
  });

  test("a key pasted by mistake is never echoed", async () => {
    const { dataDir, key, ids } = await prepare();
    for (const args of [
      ["key", "revoke", key],
      ["key", "rotate", key],
      ["key", "list", "--desk", key],
      ["key", "mint", "--desk", key],
      ["key", "revoke", ids.rotated, key],
      ["signals", "show", key],
      ["signals", "list", "--key", key],
    ]) {
      const { code, stdout, stderr } = await cliHere([...args, "--data", dataDir]);
      expect(code).not.toBe(0);
      expect(stdout + stderr).not.toContain(key.slice(4));
    }
    const says = "revoke the key itself, from stdin, with: signalbox key revoke - --data";
    await expectUsageError(["key", "revoke", key, "--data", dataDir], says);
  });

  test("of a console that cannot start", async () => {
    const dataDir = temporaryFolder();
    await mintKey(dataDir);
    const listen = ["--listen", "127.0.0.1:0", "--trust-proxy", "192.0.2.2"];
    await expectRefusal(
      ["serve", "--data", dataDir, ...listen, "--console-listen", "192.0.2.1:8081"],
      "The console cannot start: 192.0.2.1:8081 is not an address of this machine: try 127.0.0.1:8081. Change --console-listen, or turn it off.",
    );
  });

  test("of serve, before it creates anything", async () => {
    const { url } = await startServe();
    const { host } = new URL(url);
    const folder = temporaryFolder();
    const long = join(folder, "x".repeat(100));
    const cases: [args: string, says: RegExp][] = [
      [`--listen ${host}`, /such as --listen 127\.0\.0\.1:\d+\.$/m],
      [
        `--listen 127.0.0.1:0 --ops-listen ${host}`,
        /in use by another program.* such as --ops-listen 127\.0\.0\.1:\d+\.$/m,
      ],
      [
        `--listen 127.0.0.1:0 --console-listen ${host}`,
        /such as --console-listen 127\.0\.0\.1:\d+, or none with --console-listen off\.$/m,
      ],
      ...["192.0.2.1", "no-such-host.invalid"].map((other): [string, RegExp] => [
        `--listen ${other}:18080 --trust-proxy 192.0.2.2`,
        /:18080 is not an address of this machine: try 127\.0\.0\.1:18080/,
      ]),
      [`--listen 127.0.0.1:0 --data ${long}`, /too long for a socket .* --data DIR/],
    ];
    const dataDir = join(folder, "data");
    for (const [args, says] of cases) {
      await expectRefusal(["serve", "--data", dataDir, ...args.split(" ")], says);
    }
    expect(existsSync(dataDir)).toBe(false);
  });

  test("a port in use: the port to type belongs to no program and no other flag", async () => {
    const { url } = await startServe();
    const { host, port } = new URL(url);
    const [next, afterNext] = [Number(port) + 1, Number(port) + 2];
    const blocker = occupy(afterNext);
    try {
      const dataDir = join(temporaryFolder(), "d");
      const others = ["--console-listen", `127.0.0.1:${next}`, "--data", dataDir];
      const { stderr } = await cliHere(["serve", "--listen", host, ...others]);
      const [, busy, free] =
        /^signalbox: (\S+) is in use .* --listen 127\.0\.0\.1:(\d+)\.\n$/.exec(stderr) ?? [];
      expect(busy).toBe(host);
      expect(Number(free)).toBeGreaterThan(afterNext);
    } finally {
      blocker?.stop(true);
    }
  });

  test("of healthcheck without a server, or with one that is something else", async () => {
    const { url } = await startServe();
    const other = Bun.serve({ port: 0, fetch: () => new Response("<html>", { status: 200 }) });
    const unused = `http://127.0.0.1:${await freePort()}`;
    try {
      await expectRefusal(["healthcheck", unused], `No server answers at ${unused}`);
      await expectRefusal(["healthcheck", url], "--ops-listen");
      await expectRefusal(["healthcheck", `http://127.0.0.1:${other.port}`], "--ops-listen");
    } finally {
      await other.stop(true);
    }
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

describe("desks", () => {
  test("--if-missing succeeds for an existing desk, and changes nothing", async () => {
    const dataDir = temporaryFolder();
    const { run } = keysOn(dataDir);
    const created = `Created the database ${join(dataDir, "signalbox.db")}.\n`;
    const create = () => run("desk", "create", "alpha", "--if-missing");
    expect((await create()).stderr).toStartWith(created);
    const before = query(dataDir, "SELECT * FROM desks");
    expect((await create()).stderr).toBe('Desk "alpha" already exists.\n');
    expect(query(dataDir, "SELECT * FROM desks")).toEqual(before);
  });

  test("key mint and key rotate say where the key works, and for whom", async () => {
    const dataDir = temporaryFolder();
    const { run } = keysOn(dataDir);
    await run("desk", "create", "alpha");
    const mint = () => run("key", "mint", "--desk", "alpha");
    const mintReader = () => run("key", "mint", "--read", "--label", "executor");
    const noServer = `No server of ${dataDir} answers. The key works when it runs: signalbox serve`;
    expect((await mint()).stderr).toEndWith(`${noServer} --data ${dataDir}\n`);
    expect((await mintReader()).stderr).toEndWith(
      `${noServer} --read-listen HOST:PORT --data ${dataDir}\n`,
    );
    const rotated = await run("key", "rotate", "executor");
    expect(rotated.stderr).toContain("When the reader uses the new key, revoke the old one");
    await startServe([], { dataDir });
    expect((await mint()).stderr).toEndWith(`The server of ${dataDir} accepts it.\n`);
    expect((await mintReader()).stderr).toEndWith(
      `The feed of ${dataDir} accepts it, where serve has --read-listen HOST:PORT.\n`,
    );
  });
});

describe("keys", () => {
  test("mint prints only the key; with --json also its record, which list --json prints, too", async () => {
    const { run, json, listKeys } = keysOn(temporaryFolder());
    await run("desk", "create", "alpha");
    expect((await run("key", "mint", "--desk", "alpha")).stdout).toMatch(KEY);
    const mint = ["key", "mint", "--desk", "alpha", "--label", "bot 7", "--expires", "90d"];
    const { key, ...record } = await json<KeyJson & { key: string }>(...mint);
    expect(`${key}\n`).toMatch(KEY);
    expect(record).toEqual({
      id: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/),
      scope: "send",
      desk: "alpha",
      label: "bot 7",
      last4: key.slice(-4),
      created_at: expect.any(Number),
      expires_at: record.created_at + 90 * DAY_MS,
      last_used_at: null,
      lifetime_ms: 90 * DAY_MS,
      limits: null,
      revoked_at: null,
      desk_archived_at: null,
      state: "active",
      successor_id: null,
    } as unknown as KeyJson);
    expect((await listKeys())[1]).toEqual(record);
  });

  test("list shows the state of each key, of all desks or of one", async () => {
    const { dataDir } = await startServe();
    const { run, json } = keysOn(dataDir);
    expect((await run("key", "list")).stderr).toContain("signalbox key mint --desk NAME");
    const revoked = await mintKey(dataDir);
    const active = await mintKey(dataDir, "beta");
    await run("key", "mint", "--desk", "alpha", "--expires", "1s");
    await run("key", "revoke", revoked.id);
    await Bun.sleep(1_000);
    const [heading, ...rows] = (await run("key", "list")).stdout.trimEnd().split("\n");
    expect(heading).toMatch(/^ID +SCOPE +DESK +LABEL +LAST 4 +CREATED +EXPIRES +LAST USED +STATE$/);
    const states = rows.map((row) => [row.slice(0, 26), row.split(/ +/).at(-1)]);
    expect(states).toEqual([
      [revoked.id, "revoked"],
      [active.id, "active"],
      [expect.any(String), "expired"],
    ]);
    const ofBeta = await json<object[]>("key", "list", "--desk", "beta");
    expect(ofBeta).toMatchObject([{ id: active.id, desk: "beta" }]);
  });

  test("a read key is minted for one desk or all, and then like any other", async () => {
    const dataDir = temporaryFolder();
    const { run, json, listKeys } = keysOn(dataDir);
    await mintKey(dataDir);
    const mint = ["key", "mint", "--read", "--label"];
    const ofAlpha = await run(...mint, "executor", "--desk", "alpha");
    expect(ofAlpha.stdout).toMatch(/^sbr_[0-9a-f]{64}\n$/);
    expect(ofAlpha.stderr).toContain("(a read key for desk alpha, executor, ending in");
    const { key, id } = await json<KeyJson & { key: string }>(...mint, "archiver");
    expect((await listKeys()).map(({ scope, desk }) => [scope, desk])).toEqual([
      ["send", "alpha"],
      ["read", "alpha"],
      ["read", null],
    ]);
    expect((await run("key", "list")).stdout).toMatch(/ read +all +archiver /);
    const pasted = await cliHere(["key", "revoke", key, "--data", dataDir]);
    expect([pasted.code, pasted.stderr.includes(key)]).toEqual([2, false]);
    const revoke = ["key", "revoke", "-", "--json", "--data", dataDir];
    const revoked = await cliHere(revoke, { stdin: `leaked: ${key}!` });
    expect(JSON.parse(revoked.stdout)).toMatchObject({ id, state: "revoked" });
    expect(await json("key", "rotate", "executor")).toMatchObject({ scope: "read", desk: "alpha" });
    const audit = (await run("audit")).stdout;
    expect(audit).toContain("it reads the signals of all desks");
  });

  test("mint limits a key, list shows its limits, and rotate keeps them", async () => {
    const { run, json, listKeys } = keysOn(temporaryFolder());
    await run("desk", "create", "alpha");
    await run("key", "mint", "--desk", "alpha");
    expect((await run("key", "list")).stdout).not.toContain("LIMITS");
    const mint = ["key", "mint", "--desk", "alpha", "--label", "bot-7"];
    const networks = ["--allow-from", "203.0.113.0/24, 192.0.2.1", "--allow-from", "2001:db8::/32"];
    const signals = [
      "--only-source",
      "venue_1",
      "--only-source",
      "venue_3",
      "--only-type",
      "crypto",
    ];
    const minted = await run(...mint, ...networks, ...signals, "--rate-limit", "5");
    expect(minted.stdout).toMatch(KEY);
    const words =
      "networks 203.0.113.0/24, 192.0.2.1, 2001:db8::/32; sources venue_1, venue_3; types crypto; 5 requests per second";
    expect(minted.stderr).toContain(`, which does not expire, limited to ${words}. It is shown`);
    expect(await json("key", "rotate", "bot-7")).toMatchObject({
      limits: {
        networks: ["203.0.113.0/24", "192.0.2.1", "2001:db8::/32"],
        sources: ["venue_1", "venue_3"],
        types: ["crypto"],
        rate: 5,
      },
    });
    expect((await listKeys()).map((key) => key.limits?.rate)).toEqual([undefined, 5, 5]);
    const list = (await run("key", "list")).stdout.trimEnd().split("\n");
    expect(list[0]).toEndWith(" LIMITS");
    expect(list.slice(1).map((row) => row.includes(words))).toEqual([false, true, true]);
  });

  test("a limit that cannot hold is wrong usage, and says what to write", async () => {
    const dataDir = temporaryFolder();
    const { run, listKeys } = keysOn(dataDir);
    await run("desk", "create", "alpha");
    const many = Array.from({ length: 21 }, (_, n) => `10.0.0.${n}`).join(",");
    for (const [flag, value, says] of [
      ["--allow-from", "10.0.0.0/33", `"10.0.0.0/33" is not an address range: write it like`],
      ["--allow-from", "bots.example.com", "is not an address range"],
      ["--allow-from", " , ", "It is empty"],
      ["--allow-from", many, "A key can have 20 networks, and these are 21"],
      ["--only-source", "venue1", "Did you mean venue_1?"],
      ["--only-type", "stocks,crypto", "Did you mean stock?"],
      ["--rate-limit", "0", "from 1 to 100000"],
      ["--rate-limit", "1e3", "from 1 to 100000"],
      ["--rate-limit", "-5", "from 1 to 100000"],
      ["--rate-limit", "1000000", "from 1 to 100000"],
    ] as const) {
      await expectUsageError(
        ["key", "mint", "--desk", "alpha", `${flag}=${value}`, "--data", dataDir],
        says,
      );
    }
    const reader = await cliHere([
      "key",
      "mint",
      "--read",
      "--only-type",
      "stock",
      "--data",
      dataDir,
    ]);
    expect(reader.code).toBe(1);
    expect(reader.stderr).toContain("A read key sends no signals, so it has no sources or types");
    expect(await listKeys()).toEqual([]);
  });

  test("rotate mints a successor, lets the old key expire, and tells when it was last used", async () => {
    const { url, dataDir } = await startServe();
    const { run, listKeys } = keysOn(dataDir);
    const { id, key } = await mintKey(dataDir);
    const before = Date.now();
    const rotated = await run("key", "rotate", id);
    expect(rotated.stdout).toMatch(KEY);
    expect(rotated.stderr).toContain("has not been used");
    const [old, successor] = await listKeys();
    expect(old).toMatchObject({ state: "rotated", successor_id: successor?.id });
    expect(successor).toMatchObject({ state: "active", successor_id: null });
    expect((await run("key", "list")).stdout).toMatch(
      /STATE +SUCCESSOR\n.* rotated +[0-9a-f]{4}\n.* active +-\n$/,
    );
    expect(old?.expires_at).toBeWithin(before + DAY_MS, Date.now() + DAY_MS + 1);
    expect(await statusOf(url, key)).toBe(201);
    expect(await statusOf(url, rotated.stdout)).toBe(201);
    const again = await run("key", "rotate", successor?.id ?? "", "--overlap", "0s");
    const { last_used_at } = (await listKeys())[1] ?? {};
    const shown = new Date(last_used_at ?? 0).toISOString().slice(0, 19).replace("T", " ");
    expect(again.stderr).toEndWith(`was last used at ${shown}Z, and has expired.\n`);
    expect(await statusOf(url, rotated.stdout)).toBe(401);
    expect(await statusOf(url, again.stdout)).toBe(201);
  });

  test("are named by id, label or last four characters, if only one active key has them", async () => {
    const dataDir = temporaryFolder();
    const { run, json } = keysOn(dataDir);
    await run("desk", "create", "alpha");
    const mint = (label: string) => json("key", "mint", "--desk", "alpha", "--label", label);
    const [first, second] = [await mint("bot"), await mint("bot")];
    const { stderr, code } = await cliHere(["key", "revoke", "bot", "--data", dataDir]);
    expect(stderr).toStartWith("signalbox: 2 keys have this name, give the id of one: ");
    for (const { id } of [first, second]) {
      expect(stderr).toContain(`${id} (desk alpha, bot, ending in `);
    }
    expect(code).toBe(1);
    expect(await json("key", "revoke", first.id)).toMatchObject({ id: first.id });
    expect(await json("key", "rotate", "bot", "--overlap", "0s")).toMatchObject({ label: "bot" });
    const { id, last4 } = await mint("other");
    expect(await json("key", "revoke", last4.toUpperCase())).toMatchObject({ id });
    expect((await run("key", "revoke", "other")).stderr).toContain("was already revoked");
  });

  test("- takes a leaked key from stdin, in any text, and never prints it", async () => {
    const dataDir = temporaryFolder();
    const { id, key } = await mintKey(dataDir);
    const other = await mintKey(temporaryFolder());
    const revoke = ["key", "revoke", "-", "--data", dataDir];
    for (const [stdin, says] of [
      ["", "no key on stdin"],
      [key.slice(0, -1), "no key on stdin"],
      [other.key, `This key is not one of ${dataDir}, and nothing was changed`],
      [`${key}\n${other.key}`, "2 keys on stdin, and nothing was changed"],
    ] as const) {
      await expectRefusal(revoke, says, { stdin });
    }
    const update = ["key", "update", "-", "--label", "bot", "--json", "--data", dataDir];
    const updated = await cliHere(update, { stdin: key });
    expect(JSON.parse(updated.stdout)).toMatchObject({ id, label: "bot" });
    const rotated = await cliHere(["key", "rotate", "-", "--data", dataDir], { stdin: key });
    expect(rotated.stderr).toContain(`The old key ${id} `);
    const header = `Authorization: Bearer ${key}\n${key}`;
    const revoked = await cliHere([...revoke, "--json"], { stdin: header });
    expect(JSON.parse(revoked.stdout)).toMatchObject({ id, state: "revoked" });
    expect(revoked.stdout + revoked.stderr).not.toContain(key);
  });
});

describe("healthcheck", () => {
  test("prints each check of a running server, by its folder and by its address", async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const { dataDir } = await startServe(["--ops-listen", address]);
    for (const where of [["--data", dataDir], [`http://${address}`]]) {
      const { code, stdout } = await cliHere(["healthcheck", ...where]);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^ok\nwriter: ok .*\ndisk: ok .*\ncertificate: ok .*\n$/);
      const live = await cliHere(["healthcheck", "--live", ...where]);
      expect(live).toEqual({ code: 0, stdout: "ok\n", stderr: "" });
    }
  });

  test("fails for a server that is not ready", async () => {
    const past = new Date(Date.now() - DAY_MS);
    const expired = await makeCertificate("old", { from: new Date(0), to: past });
    const { certFile, keyFile } = writeCertificate(temporaryFolder(), expired);
    const { dataDir } = await startServe(["--tls-cert", certFile, "--tls-key", keyFile]);
    const { code, stdout, stderr } = await cliHere(["healthcheck", "--data", dataDir]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^failing\n.*certificate: failing \(The certificate expired at /s);
    expect(stderr).toContain("not ready");
  });
});

describe("serve --quickstart", () => {
  test("prints a key, a one-time link to the console, and where the data is", async () => {
    const port = await freePort();
    const flags = ["--quickstart", "--console-listen", `127.0.0.1:${port}`];
    const dataDir = join(temporaryFolder(), "data");
    const where = ["--listen", "127.0.0.1:0", "--data", dataDir];
    const first = startOnTerminal(["serve", ...flags, ...where], { cols: 400 });
    const shown = await first.showed(/manage their keys at/);
    expect(shown).toMatch(/sbk_[0-9a-f]{64}/);
    // Browsers create no passkeys for an IP address.
    const link = /^ {2}(http:\/\/localhost:\d+\/join\/\S+)\r?$/m.exec(shown)?.[1] ?? "";
    expect(new URL(link).port).toBe(String(port));
    const page = await (await fetch(link)).text();
    expect(page).toContain("demo@example.com");
    expect(page).toContain("passkey");
    first.kill("SIGTERM");
    expect((await first.ended()).code).toBe(0);

    const second = await startServe(flags, { dataDir });
    expect(second.output.stdout).toBe("");
    await second.logged(
      `nobody has opened the console link: get a link with: signalbox member invite demo demo@example.com --data ${dataDir}`,
    );
  });

  test("creates nothing if there is a desk", async () => {
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

test("the log is JSON lines; without a desk it says how to create one", async () => {
  const server = await startServe();
  expect(server.output.stderr).toContain("signalbox desk create NAME");
  for (const line of server.output.stderr.trimEnd().split("\n")) {
    expect(JSON.parse(line)).toMatchObject({ level: expect.any(String), time: expect.any(String) });
  }
});
