/** What happens with a directory that refuses, delays or advises, and with files and ports that are in the way. */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DAY_MS, HOUR_MS } from "../../../src/lib/text/time.ts";
import { askServer, askStatus } from "../../../src/ops/client.ts";
import { presented } from "../../kit/certificates.ts";
import { cliHere, freePort, startServe } from "../../kit/cli.ts";
import { acmeFlags, certificateCheck, problem, startDirectory } from "../kit/directory.ts";
import { stop } from "../kit/faults.ts";
import { scrape } from "../../ops/_metrics.ts";
import { temporaryFolder } from "../../kit/setup.ts";

/** Of a certificate that expires while a test waits. */
const SHORT_S = 2;
const names = ["console.test", "signals.test"];

async function setUp(lifetimeS?: number) {
  const directory = await startDirectory(lifetimeS);
  const dataDir = join(temporaryFolder(), "data");
  // Half of the timeout passes with each stop.
  const args = [...acmeFlags(names, directory), "--stop-timeout=100ms"];
  const start = (until?: string, more: readonly string[] = []) =>
    startServe([...args, ...more], { dataDir, ...(until === undefined ? {} : { until }) });
  return { directory, challengePort: directory.challengePort, dataDir, args, start };
}

/** What `doctor` finds about the certificate, or by another check. */
async function examine(
  args: readonly string[],
  dataDir: string,
  check = "certificate",
): Promise<object | undefined> {
  const listen = ["--listen", "127.0.0.1:0", "--data", dataDir];
  const { stdout } = await cliHere(["doctor", "--json", ...args, ...listen]);
  const findings = JSON.parse(stdout) as { name: string }[];
  return findings.find(({ name }) => name === check);
}

function readState(dataDir: string): Record<string, unknown> {
  const text = readFileSync(join(dataDir, "acme", "state.json"), "utf8");
  return JSON.parse(text) as Record<string, unknown>;
}

test("a first start obtains one certificate for all names; a restart makes no request", async () => {
  const { directory, challengePort, dataDir, start } = await setUp();
  const server = await start();
  const { subjectAltName, fingerprint } = await presented(server.url);
  expect(subjectAltName).toBe(names.map((name) => `DNS:${name}`).join(", "));
  expect(directory.orders.length).toBe(1);
  // As a bot does, which knows the root and the name.
  for (const serverName of names) {
    const tls = { ca: await directory.root(), serverName };
    const answer = await fetch(`${server.url}/openapi.yaml`, { tls, keepalive: false });
    expect(answer.status).toBe(200);
  }

  const folder = join(dataDir, "acme");
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  // Renewal information may just be written.
  const files = readdirSync(folder).filter((name) => name !== "state.json.new");
  expect(files.toSorted()).toEqual(["account-key.pem", "certificate.pem", "state.json"]);
  for (const file of readdirSync(folder)) {
    expect([file, statSync(join(folder, file)).mode & 0o777]).toEqual([file, 0o600]);
  }
  expect(server.output.stderr).not.toContain("PRIVATE KEY");

  const [token = ""] = directory.tokens;
  expect(token).not.toBe("");
  for (const path of ["/", `/.well-known/acme-challenge/${token}`, "/v1/signals", "/readyz"]) {
    const answer = await fetch(`http://127.0.0.1:${challengePort}${path}`, { redirect: "manual" });
    expect([path, answer.status, await answer.text()]).toEqual([path, 404, ""]);
  }
  const status = await askStatus(dataDir);
  expect(status?.acme).toMatchObject({ domains: names, failure: null });
  expect((await scrape(dataDir)).samples.get("signalbox_acme_failing")).toBe(0);
  const dueIn = (status?.acme?.next_attempt_at ?? 0) - Date.now();
  expect(dueIn).toBeGreaterThan(54 * DAY_MS);
  expect(dueIn).toBeLessThanOrEqual(60 * DAY_MS);
  await stop(server);

  await directory.stop();
  const again = await start();
  expect((await presented(again.url)).fingerprint).toBe(fingerprint);
  expect(again.log().filter(({ level }) => level !== "info")).toEqual([]);
  await stop(again);
});

describe("without a first certificate", () => {
  test("the server waits, says why, and stops on SIGTERM; Retry-After holds across restarts and SIGHUP", async () => {
    const { directory, dataDir, args, start } = await setUp();
    directory.refusal = () => problem("rateLimited", "too many orders", { "Retry-After": "7200" });
    const refusedAt = Date.now();
    const server = await start("no certificate could be obtained");
    expect(server.log().at(-1)).toMatchObject({ level: "error", reason: "too many orders" });
    expect((await askServer(dataDir, "/healthz")).status).toBe(200);
    expect((await certificateCheck(dataDir)).ok).toBe(false);
    const { samples } = await scrape(dataDir);
    expect(samples.get("signalbox_acme_failing")).toBe(1);
    expect(samples.get('signalbox_ready{check="certificate"}')).toBe(0);
    expect(await examine(args, dataDir)).toMatchObject({
      severity: "problem",
      next: expect.stringContaining("the directory asked to wait, so the server tries again at"),
    });
    await stop(server);
    expect(await examine(args, dataDir)).toMatchObject({
      severity: "ok",
      sentence: `None yet: the server orders it from ${directory.url}.`,
    });

    const requests = directory.requests.length;
    const again = await start("waiting for a certificate");
    const said = again.log().find(({ level }) => level === "warn");
    expect(said?.msg).toBe("the last order failed; the directory asked to wait until next_attempt");
    again.kill("SIGHUP");
    await again.logged("no order before next_attempt");
    const waiting = await askStatus(dataDir);
    expect(waiting?.acme?.next_attempt_at).toBeGreaterThanOrEqual(refusedAt + 2 * HOUR_MS);
    expect(waiting?.listen).toBeNull();
    await stop(again);
    expect(directory.requests.length).toBe(requests);
  });

  test("backups are made, and status and metrics say so", async () => {
    const { directory, dataDir, args, start } = await setUp();
    directory.refusal = () => problem("malformed", "not today");
    const dir = join(temporaryFolder(), "backups");
    const flags = ["--backup-dir", dir, "--console-listen", `127.0.0.1:${await freePort()}`];
    const server = await start("waiting for a certificate", flags);
    await server.logged("backup made");
    const { stdout } = await cliHere(["status", "--data", dataDir]);
    expect(stdout).toMatch(/^signals +starting$/m);
    expect(stdout).toMatch(/^console +starting$/m);
    expect(stdout).toContain(join(dir, "signalbox-"));
    expect((await scrape(dataDir)).samples.get("signalbox_backup_interval_seconds")).toBe(3_600);
    expect(await examine(args, dataDir, "backups")).toMatchObject({ severity: "ok" });
    directory.refusal = () => null;
    server.kill("SIGHUP");
    await server.logged("takes signals at");
    expect(readdirSync(dir)).toHaveLength(1);
    await stop(server);
  });

  test("a refused order is repeated later, also after a restart, and at once on SIGHUP", async () => {
    const { directory, dataDir, start } = await setUp();
    directory.refusal = () => problem("malformed", "not today");
    const server = await start("no certificate could be obtained");
    const nextAttempt = server.log().at(-1)?.["next_attempt"];
    expect(Date.parse(String(nextAttempt))).toBeGreaterThan(Date.now() + 30_000);
    await stop(server);

    const requests = directory.requests.length;
    const again = await start("waiting for a certificate");
    const said = again.log().find(({ level }) => level === "warn");
    expect(said).toMatchObject({ reason: "not today", next_attempt: nextAttempt });
    expect(said?.msg).toContain("run: systemctl reload signalbox");
    expect(directory.requests.length).toBe(requests);
    directory.refusal = () => null;
    again.kill("SIGHUP");
    await again.logged("takes signals at");
    expect(readState(dataDir)).toMatchObject({ failures: 0, failure: null });
    await stop(again);
  });

  test("a directory that says again that the order is ready is asked until it is valid", async () => {
    const { directory, start } = await setUp();
    directory.delays = ["processing", "ready", "processing"];
    const server = await start();
    expect(directory.orders.length).toBe(1);
    await stop(server);
  });
});

describe("a renewal", () => {
  test("happens when the directory says so, without a restart, and names what it replaces", async () => {
    const { directory, dataDir, start } = await setUp(120);
    const asked: string[] = [];
    directory.renewalInfo = (id) => {
      asked.push(id);
      // The first certificate is overdue, the second one is not.
      const from = Date.now() + (asked.length === 1 ? -2 : 1) * HOUR_MS;
      const suggestedWindow = { start: new Date(from), end: new Date(from + 1_000) };
      return Response.json({ suggestedWindow }, { headers: { "Retry-After": "21600" } });
    };
    const server = await start();
    const first = await presented(server.url);
    await server.logged("new certificate in use");
    expect((await presented(server.url)).fingerprint).not.toBe(first.fingerprint);
    while (asked.length < 2 || readState(dataDir)["renewal"] === null) await Bun.sleep(20);
    expect(directory.orders.map(({ replaces }) => replaces)).toEqual([undefined, asked[0]]);
    const { renewal } = readState(dataDir) as { renewal: { ask_at: number } };
    expect(renewal.ask_at).toBeGreaterThan(Date.now() + 5 * HOUR_MS);
    await stop(server);
  });

  test("that fails leaves the old certificate in use, and is reported", async () => {
    const { directory, dataDir, start } = await setUp(120);
    const overdue = { start: new Date(0), end: new Date(1) };
    directory.renewalInfo = () => Response.json({ suggestedWindow: overdue });
    const { orders } = directory;
    directory.refusal = () => (orders.length === 0 ? null : problem("malformed", "not today"));
    const server = await start();
    const { fingerprint } = await presented(server.url);
    await server.logged("the certificate could not be renewed; the current one stays in use");
    expect((await presented(server.url)).fingerprint).toBe(fingerprint);
    expect((await certificateCheck(dataDir)).detail).toContain("The certificate is not renewed");
    directory.refusal = () => null;
    await server.logged("new certificate in use");
    expect((await presented(server.url)).fingerprint).not.toBe(fingerprint);
    await stop(server);
  });

  test("that would add a name and fails: the missing name is reported", async () => {
    const { directory, dataDir, args, start } = await setUp();
    await stop(await start());
    directory.refusal = () => problem("malformed", "not today");
    const more = ["--acme-domain", "third.test"];
    const finding = { severity: "problem", sentence: "The certificate lacks third.test." };
    expect(await examine([...args, ...more], dataDir)).toMatchObject(finding);
    const server = await start(undefined, more);
    await server.logged("the certificate could not be renewed");
    const said = server.log().find(({ msg }) => msg === "the certificate in use lacks names");
    expect(said).toMatchObject({ level: "warn", missing: ["third.test"] });
    expect((await askStatus(dataDir))?.acme?.missing).toEqual(["third.test"]);
    directory.refusal = () => null;
    server.kill("SIGHUP");
    await server.logged("new certificate in use");
    expect((await askStatus(dataDir))?.acme?.missing).toEqual([]);
    await stop(server);
  });
});

function occupy(port: number) {
  return Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } });
}

describe("the port of --acme-http-listen in use by another program", () => {
  test("does not stop a server with a valid certificate, which says so and tries again on SIGHUP", async () => {
    const { challengePort, dataDir, args, start } = await setUp();
    await stop(await start());
    const other = occupy(challengePort);
    const check = ["serve", "--check", ...args, "--listen=127.0.0.1:0", "--data", dataDir];
    expect((await cliHere(check)).stderr).toContain("The configuration is valid");
    const server = await start();
    const said = server.log().find(({ level }) => level === "error");
    expect(said?.msg).toContain("when it can, run: systemctl reload signalbox");
    expect(said?.["reason"]).toMatch(
      /is in use by another program: stop it, .* such as --acme-http-listen 127\.0\.0\.1:\d+, to which/,
    );
    expect((await askServer(dataDir, "/readyz")).status).toBe(200);
    expect((await scrape(dataDir)).samples.get("signalbox_acme_failing")).toBe(1);
    expect((await askStatus(dataDir))?.acme).toMatchObject({
      is_listening: false,
      failure: { reason: said?.["reason"] },
    });
    other.stop(true);
    server.kill("SIGHUP");
    await server.logged("listening for challenges again");
    while ((await askStatus(dataDir))?.acme?.failure !== null) await Bun.sleep(20);
    const answer = await fetch(`http://127.0.0.1:${challengePort}/`);
    expect(answer.status).toBe(404);
    await stop(server);
    expect(readState(dataDir)).toMatchObject({ failures: 0, failure: null });
  });

  test("stops a start without a valid certificate", async () => {
    const { challengePort, dataDir, args, start } = await setUp(SHORT_S);
    const refused = ["serve", ...args, "--listen=127.0.0.1:0", "--data", dataDir];
    const says = /^signalbox: .*is in use by another program.* such as --acme-http-listen /m;
    let other = occupy(challengePort);
    expect((await cliHere(refused)).stderr).toMatch(says);
    other.stop(true);
    await stop(await start());
    await Bun.sleep(SHORT_S * 1_000);
    other = occupy(challengePort);
    const { code, stderr } = await cliHere(refused);
    expect([code, stderr]).toEqual([1, expect.stringMatching(says)]);
    expect((await cliHere([...refused, "--check"])).stderr).toMatch(says);
    other.stop(true);
  });
});

test("a stored certificate that other users can read is used, and its permissions are tightened", async () => {
  const { directory, dataDir, args, start } = await setUp();
  const first = await start();
  const { fingerprint } = await presented(first.url);
  await stop(first);
  const folder = join(dataDir, "acme");
  const files = readdirSync(folder).map((name) => join(folder, name));
  for (const file of files) chmodSync(file, 0o644);
  chmodSync(folder, 0o755);
  const { stdout } = await cliHere(["doctor", "--json", ...args, "--data", dataDir]);
  expect(stdout).toContain(join(folder, "account-key.pem"));

  directory.refusal = () => problem("malformed", "not today");
  const server = await start();
  expect((await presented(server.url)).fingerprint).toBe(fingerprint);
  for (const path of [folder, ...files]) {
    expect([path, statSync(path).mode & 0o077]).toEqual([path, 0]);
    expect(server.output.stderr).toContain(`${path} was open to other users`);
  }
  await stop(server);
});

test("doctor without the flags of serve does not call a proxy what obtained the certificate", async () => {
  const { dataDir, start } = await setUp();
  await stop(await start());
  expect(await examine([], dataDir)).toMatchObject({
    severity: "warning",
    sentence: expect.stringContaining(join(dataDir, "acme", "certificate.pem")),
    next: expect.stringMatching(/^(?!.*delete).*give doctor the flags of serve/),
  });
});

test("another directory is asked at once, and what the first one said no longer counts", async () => {
  const { directory, dataDir, start } = await setUp();
  directory.refusal = () => problem("rateLimited", "too many orders", { "Retry-After": "7200" });
  await stop(await start("no certificate could be obtained"));
  const server = await start(undefined, acmeFlags([], await startDirectory()));
  const { fingerprint } = await presented(server.url);
  await stop(server);

  directory.refusal = () => null;
  const back = await start();
  await back.logged("new certificate in use");
  expect((await presented(back.url)).fingerprint).not.toBe(fingerprint);
  expect(readState(dataDir)).toMatchObject({ directory: directory.url, issuer: directory.url });
  await stop(back);
});

test("a certificate that expired while the server was down is used until there is another one", async () => {
  const { directory, dataDir, args, start } = await setUp(SHORT_S);
  const { orders } = directory;
  directory.refusal = () => (orders.length === 0 ? null : problem("malformed", "not today"));
  const { url, ...server } = await start();
  const { fingerprint } = await presented(url);
  server.kill("SIGKILL");
  await server.exited;
  await Bun.sleep(SHORT_S * 1_000);
  expect(await examine(args, dataDir)).toMatchObject({ severity: "problem" });
  const again = await start();
  await again.logged("the certificate has expired and could not be renewed");
  expect((await presented(again.url)).fingerprint).toBe(fingerprint);
  const { ok, detail } = await certificateCheck(dataDir);
  expect([ok, detail]).toEqual([false, expect.stringMatching(/^The certificate expired at /)]);
  await stop(again);
});

test("a stored certificate that is damaged is replaced; doctor does not ask for --tls-cert", async () => {
  const { dataDir, args, start } = await setUp();
  await stop(await start());
  const path = join(dataDir, "acme", "certificate.pem");
  writeFileSync(path, "damaged", { mode: 0o600 });
  const reason = `${path} is not a PEM certificate.`;
  expect(await examine(args, dataDir)).toEqual({
    name: "certificate",
    severity: "problem",
    sentence: reason,
    next: "start the server, which orders another one",
  });
  const server = await start();
  await server.logged("certificate issued");
  const said = server.log().find(({ level }) => level === "warn");
  expect(said).toMatchObject({ reason, msg: expect.stringContaining("another one is ordered") });
  await stop(server);
});

describe("while the server runs", () => {
  test("a certificate's file that was deleted or damaged is written again from memory", async () => {
    const { directory, dataDir, start } = await setUp();
    const server = await start();
    const path = join(dataDir, "acme", "certificate.pem");
    const text = readFileSync(path, "utf8");
    for (const damage of [() => rmSync(path), () => writeFileSync(path, "damaged")]) {
      damage();
      server.kill("SIGHUP");
      while (!existsSync(path) || readFileSync(path, "utf8") !== text) await Bun.sleep(20);
      expect(statSync(path).mode & 0o777).toBe(0o600);
    }
    await server.logged("could not be used: it was written again");
    expect(server.output.stderr).not.toContain("restart the server");
    expect(directory.orders.length).toBe(1);
    await stop(server);
    await stop(await start());
    expect(directory.orders.length).toBe(1);
  });

  test("a certificate's file that cannot be written again is reported everywhere, and leaves no copy", async () => {
    const { dataDir, args, start } = await setUp();
    const server = await start();
    const { fingerprint } = await presented(server.url);
    const folder = join(dataDir, "acme");
    const path = join(folder, "certificate.pem");
    rmSync(path);
    mkdirSync(path);
    server.kill("SIGHUP");
    await server.logged("nor written again: do not restart the server before it can");
    expect(readdirSync(folder)).not.toContain("certificate.pem.new");
    for (const flags of [args, []]) {
      expect(await examine(flags, dataDir)).toMatchObject({
        severity: "warning",
        sentence: expect.stringContaining(`${path} cannot be read (EISDIR). The server uses`),
        next: expect.stringContaining("do not restart the server"),
      });
    }
    expect((await presented(server.url)).fingerprint).toBe(fingerprint);
    await stop(server);
  });
});

test("a damaged account key is reported at start and by doctor, before a renewal fails", async () => {
  const { dataDir, args, start } = await setUp();
  await stop(await start());
  const path = join(dataDir, "acme", "account-key.pem");
  writeFileSync(path, "damaged");
  const reason = `${path} is not a PEM private key: delete it, and the next order makes another account.`;
  expect(await examine(args, dataDir)).toMatchObject({ severity: "warning", sentence: reason });
  const server = await start();
  expect(server.log().find(({ level }) => level === "error")).toMatchObject({ reason });
  await stop(server);
});

test("a directory that refuses connections is named, with what to check", async () => {
  const { directory, start } = await setUp();
  await directory.stop();
  const server = await start("no certificate could be obtained");
  expect(String(server.log().at(-1)?.["reason"])).toMatch(
    /^no answer from 127\.0\.0\.1:\d+: it refused the connection \(ECONNREFUSED\); check the URL of --acme-directory/,
  );
  await stop(server);
});

test("the directory is not trusted without --acme-ca", async () => {
  const { directory, dataDir } = await setUp();
  const args = ["--acme-domain", "signals.test", "--acme-directory", directory.url];
  const where = ["--acme-http-listen", "127.0.0.1:0"];
  const server = await startServe([...args, ...where], {
    dataDir,
    until: "no certificate could be obtained",
  });
  expect(directory.requests).toEqual([]);
  expect(server.log().at(-1)?.["reason"]).toMatch(/self signed.*; if .* with --acme-ca FILE$/);
  await stop(server);
});
