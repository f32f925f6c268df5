/** The parts of ACME that need no directory: names, times, ids, and flags. */
import "reflect-metadata";
import { describe, expect, test } from "bun:test";
import * as x509 from "@peculiar/x509";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { serveCommand } from "../../src/commands/serve/serve.ts";
import type { ServeConfig } from "../../src/serve/config.ts";
import { readConfig } from "../../src/commands/serve/read-config.ts";
import type { ServeOptions } from "../../src/commands/serve/settings.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { feedUrlOf } from "../../src/serve/listeners.ts";
import type { Address } from "../../src/http/address.ts";
import { reasonOf, retryTime } from "../../src/http/acme/directory.ts";
import {
  accountKey,
  makeFolder,
  readState,
  saveCertificate,
  saveState,
} from "../../src/http/acme/files.ts";
import { type AcmePlan, parseDomain } from "../../src/http/acme/plan.ts";
import {
  certificateId,
  decideRenewal,
  readRenewalInfo,
  timeInWindow,
  timeToAsk,
  timeToRenew,
} from "../../src/http/acme/renewal.ts";
import {
  askedOf,
  boundWaits,
  initialState,
  resumeState,
  retryDelay,
} from "../../src/http/acme/state.ts";
import { cliHere, expectRefusal } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";

test.each([
  ["signals.example.com", "signals.example.com"],
  ["Signals.Example.COM.", "signals.example.com"],
  ["xn--bcher-kva.example", "xn--bcher-kva.example"],
  ["signalbox", "signalbox"],
  ["0x7f.example.com", "0x7f.example.com"],
])("the name %s is read as %s", (text, name) => expect(parseDomain(text)).toBe(name));

test.each([
  ["*.example.com", "is a wildcard"],
  ["192.0.2.1", "is an IP address"],
  ["127.1", "is an IP address"],
  ["0x7f.1", "is an IP address"],
  ["0x7f000001", "is an IP address"],
  ["[2001:db8::1]", "is an IP address"],
  ["2001:db8::1", "is an IP address"],
  ["https://signals.example.com", "is not a DNS name"],
  ["signals.example.com:443", "is not a DNS name"],
  ["bücher.example", "is not a DNS name"],
  ["-a.example.com", "is not a DNS name"],
  ["a..example.com", "is not a DNS name"],
  [`${"a.".repeat(130)}com`, "is not a DNS name"],
])("the name %s is refused", (text, says) => {
  expect(() => parseDomain(text)).toThrow(says);
  expect(() => parseDomain(text)).toThrow("such as --acme-domain signals.example.com");
});

/** `serialNumber`: in hexadecimal. `keyId`: of the issuer. */
async function pemOf(serialNumber: string, keyId: string | null): Promise<string> {
  const curve = { name: "ECDSA", namedCurve: "P-256" };
  const keys = await crypto.subtle.generateKey(curve, true, ["sign", "verify"]);
  const extensions = keyId === null ? [] : [new x509.AuthorityKeyIdentifierExtension(keyId)];
  const certificate = { name: "CN=signals.test", serialNumber, keys, extensions };
  return (await x509.X509CertificateGenerator.createSelfSigned(certificate)).toString("pem");
}

/** RFC 9773, 4.1. */
test.each([
  ["87654321", "69885b6b87464041e1b37b847ba0ae2cde01c8d4", "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE"],
  ["07654321", "69885b6b", "aYhbaw.B2VDIQ"],
  ["01", null, null],
])(
  "a certificate's id is made of its serial number %s and its issuer's key %p",
  async (serial, keyId, id) => {
    expect(certificateId({ cert: await pemOf(serial, keyId) })).toBe(id);
  },
);

const lasting = (ms: number) => ({ startsAt: 0, expiresAt: ms });

describe("the schedule", () => {
  test("renews at two thirds of any lifetime, or a little earlier", () => {
    for (const days of [90, 6, 0.001]) {
      const validity = lasting(days * DAY_MS);
      expect(timeToRenew(validity, () => 0)).toBeCloseTo((days * DAY_MS * 2) / 3, 0);
      const earliest = timeToRenew(validity, () => 1) / (days * DAY_MS);
      expect(earliest).toBeGreaterThan(0.6);
      expect(earliest).toBeLessThan(0.66);
    }
  });

  test("takes a time in the directory's window, but leaves a tenth of the lifetime", () => {
    const window = { from: 10 * DAY_MS, to: 12 * DAY_MS };
    expect(timeInWindow(window, lasting(30 * DAY_MS), () => 0.5)).toBe(11 * DAY_MS);
    const late = { from: 29 * DAY_MS, to: 40 * DAY_MS };
    expect(timeInWindow(late, lasting(30 * DAY_MS), () => 0.5)).toBe(27 * DAY_MS);
  });

  test.each([
    [null, 6 * HOUR_MS],
    [1_000, MINUTE_MS],
    [2 * HOUR_MS, 2 * HOUR_MS],
    [30 * DAY_MS, DAY_MS],
  ])("asks again after Retry-After %p: %d ms", (retryAt, waitMs) => {
    expect(timeToAsk(0, retryAt)).toBe(waitMs);
  });

  test("tries at most five times in the first hour, then every six hours", () => {
    const delays = [1, 2, 3, 4, 5, 6, 7, 50].map((count) => retryDelay(count, null, () => 0));
    expect(delays.map((ms) => ms / MINUTE_MS)).toEqual([1, 3, 9, 27, 81, 243, 360, 360]);
    expect(retryDelay(1, null, () => 1)).toBe(1.2 * MINUTE_MS);
  });

  test("tries often enough for a certificate of six days, or of seconds", () => {
    expect(retryDelay(1, lasting(6 * DAY_MS), () => 0)).toBe(MINUTE_MS);
    expect(retryDelay(50, lasting(6 * DAY_MS), () => 0)).toBe(6 * HOUR_MS);
    expect(retryDelay(50, lasting(20_000), () => 0)).toBe(2_000);
  });
});

test("renewal information without a valid window is an error", () => {
  const [start, end] = ["2026-01-02T04:00:00Z", "2026-01-03T04:00:00Z"];
  const { window, explanation } = readRenewalInfo({ suggestedWindow: { start, end } });
  expect(window).toEqual({ from: Date.parse(start), to: Date.parse(end) });
  expect(explanation).toBeNull();
  for (const wrong of [
    {},
    { suggestedWindow: { start: end, end: start } },
    { suggestedWindow: {} },
  ]) {
    expect(() => readRenewalInfo(wrong)).toThrow("no valid window");
  }
});

test("Retry-After is seconds or a date", () => {
  expect(retryTime("120", 1_000)).toBe(121_000);
  expect(retryTime("Thu, 01 Jan 1970 00:01:00 GMT", 0)).toBe(MINUTE_MS);
  for (const far of ["99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"]) {
    expect(retryTime(far, 0)).toBe(8 * DAY_MS);
  }
  expect([retryTime("soon", 0), retryTime(null, 0)]).toEqual([null, null]);
});

const asked = { directory: "https://ca.test/", plan: "a" };

test("the thread that takes signals does not wait for the disk", async () => {
  const dataDir = temporaryFolder();
  makeFolder(dataDir);
  for (const [name, save] of [
    ["state.json", () => saveState(dataDir, initialState(asked))],
    ["certificate.pem", () => saveCertificate(dataDir, "text")],
    ["account-key.pem", () => accountKey(dataDir)],
  ] as const) {
    const path = join(dataDir, "acme", name);
    const saving = save();
    expect([name, existsSync(path)]).toEqual([name, false]);
    await saving;
    expect([name, existsSync(path)]).toEqual([name, true]);
  }
});

test("other settings end the wait after a failure, but not the wait that the directory asked for", () => {
  const failed = { failures: 5, failure: { at: 1, reason: "no" }, retry_at: 9, held_until: 4 };
  const kept = { ...initialState(asked), ...failed };
  expect(resumeState(kept, asked)).toEqual(kept);
  const changed = { ...asked, plan: "b" };
  expect(resumeState(kept, changed)).toEqual({ ...kept, plan: "b", failures: 0, retry_at: 4 });
  // What failed may have been another name's order.
  expect(resumeState({ ...kept, held_until: 0 }, changed).failure).toBeNull();
  const other = { directory: "https://other.test/", plan: "c" };
  expect(resumeState(kept, other)).toEqual(initialState(other));

  const plan: AcmePlan = {
    domains: ["a.test"],
    email: null,
    directory: asked.directory,
    caFile: "/ca.pem",
    httpListen: { host: "0.0.0.0", port: 80 },
  };
  const digests = [
    askedOf(plan, "old"),
    askedOf(plan, "new"),
    askedOf({ ...plan, domains: ["b.test"] }, "old"),
    askedOf({ ...plan, httpListen: { host: "0.0.0.0", port: 8880 } }, "old"),
  ];
  expect(new Set(digests.map((one) => one.plan)).size).toBe(4);
  expect(digests).toContainEqual(askedOf({ ...plan }, "old"));
});

describe("the words of a directory", () => {
  const many = "\u001b".repeat(100_000);

  test("are cut, and have no control characters, in errors and explanations", () => {
    expect(reasonOf(new Error(many))).toBe(" ".repeat(500));
    const [start, end] = ["2026-01-02T04:00:00Z", "2026-01-03T04:00:00Z"];
    const info = { suggestedWindow: { start, end }, explanationURL: many };
    expect(readRenewalInfo(info).explanation).toBe(" ".repeat(500));
  });

  test("are cut when it does not say when to renew", async () => {
    const lines: string[] = [];
    await decideRenewal({
      certificate: { cert: await pemOf("01", "01"), key: "", startsAt: 0, expiresAt: 1 },
      before: null,
      // It names the URL, which is not an https URL.
      directory: { url: many, ca: null, now: () => 0 },
      signal: AbortSignal.any([]),
      log: pino({}, { write: (line) => void lines.push(line) }),
    });
    expect(lines.length).toBe(1);
    expect(lines.join().length).toBeLessThan(1_000);
  });
});

test("a failure that a wrong clock dated in the future does not delay the next order", () => {
  const failure = { at: 9e12, reason: "expired" };
  const failed = { ...initialState(asked), failures: 7, failure, retry_at: 9e12 + 6 * HOUR_MS };
  expect(boundWaits(failed, 1_000)).toEqual(initialState(asked));
  expect(boundWaits(failed, 9e12)).toEqual(failed);
});

test("waits that a clock made which was set back since are shortened", () => {
  const renewal = { certificate: "a", at: 9e15, window: null, ask_at: 9e15 };
  const state = { ...initialState(asked), retry_at: 9e15, renewal };
  const bounded = boundWaits(state, 0);
  expect(bounded).toMatchObject({ held_until: 0, retry_at: 7.2 * HOUR_MS });
  expect(bounded.renewal).toEqual({ ...renewal, ask_at: DAY_MS });
  expect(boundWaits(bounded, MINUTE_MS)).toEqual(bounded);
  const held = boundWaits({ ...state, held_until: 9e15 }, 0);
  expect(held).toMatchObject({ held_until: 8 * DAY_MS, retry_at: 8 * DAY_MS });
});

test("a damaged account key is named, with what to do", async () => {
  const dataDir = temporaryFolder();
  makeFolder(dataDir);
  const key = await accountKey(dataDir);
  expect(await accountKey(dataDir)).toBe(key);
  const path = join(dataDir, "acme", "account-key.pem");
  writeFileSync(path, "damaged");
  const says = `${path} is not a PEM private key: delete it`;
  expect(await accountKey(dataDir).catch(String)).toContain(says);
  rmSync(path);
  expect(await accountKey(dataDir)).toContain("PRIVATE KEY");
});

test.each<[string, string, (path: string) => void]>([
  ["a file", "", (path) => writeFileSync(path, "")],
  ["a link to nothing", "", (path) => symlinkSync(`${path}-moved`, path)],
  ["a folder", "state.json", (path) => mkdirSync(path, { recursive: true })],
  ["a folder", "account-key.pem", (path) => mkdirSync(path, { recursive: true })],
  ["a folder", "certificate.pem", (path) => mkdirSync(path, { recursive: true })],
])("%s in the place of acme/%s is named, with what to do", async (_, name, make) => {
  const dataDir = temporaryFolder();
  const path = join(dataDir, "acme", name);
  make(path);
  const says = `${path} is not a ${name === "" ? "folder" : "file"}: move away what has this name`;
  const args = ["--acme-domain=a.test", "--listen=127.0.0.1:0", "--acme-http-listen=127.0.0.1:0"];
  for (const check of [["--check"], []]) {
    await expectRefusal(
      ["serve", ...check, ...args, "--console-listen=off", "--log-level=silent", "--data", dataDir],
      says,
    );
  }
});

test("the folder may be a link to another one", () => {
  const dataDir = temporaryFolder();
  symlinkSync(temporaryFolder(), join(dataDir, "acme"));
  expect(() => makeFolder(dataDir)).not.toThrow();
});

test("a damaged state does not stop renewals", async () => {
  const dataDir = temporaryFolder();
  makeFolder(dataDir);
  expect(readState(dataDir)).toBeNull();
  await saveState(dataDir, initialState(asked));
  expect(readState(dataDir)).toEqual(initialState(asked));
  for (const text of ["", "{}", "null", '{"directory":7}']) {
    writeFileSync(join(dataDir, "acme", "state.json"), text);
    expect(readState(dataDir)).toBeNull();
  }
});

describe("serve refuses", () => {
  const domain = ["--acme-domain", "signals.example.com"];
  test.each<[string[], string, number]>([
    [[...domain, "--tls-cert", "a", "--tls-key", "b"], "leave out --tls-cert and --tls-key", 2],
    [["--acme-email", "ops@example.com"], "has no effect without a name for the certificate", 2],
    [["--acme-domain", "*.example.com"], "is a wildcard", 2],
    [[...domain, "--acme-directory", "http://ca.example.com"], "over https only. Write it like", 2],
    [[...domain, "--acme-ca", "/root.pem"], "add --acme-directory URL", 2],
    [[...domain, "--public-url", "https://a.test"], "add --acme-domain a.test, or correct", 2],
    [
      [...domain, "--console-listen=127.0.0.1:0", "--console-url=https://b.test"],
      "add --acme-domain b.test, or",
      2,
    ],
    [[...domain, "--acme-email", "a@b,c@d"], "Write one address", 2],
    [
      [...domain, "--acme-directory=https://ca.test", "--acme-ca=/no/such/file"],
      "name a readable PEM file with --acme-ca",
      1,
    ],
    [[...domain, "--acme-http-listen", "0.0.0.0:443"], "uses the port of --listen", 2],
  ])("%p", async (args, says, code) => {
    const result = await cliHere(["serve", "--check", ...args, "--data", "./d"]);
    expect(result.stderr).toContain(says);
    expect(result.code).toBe(code);
  });
});

const two = ["--acme-domain=a.test,b.test"];
test.each<[readonly string[], string | null, string | null]>([
  [["--acme-domain=a.test"], "https://a.test", null],
  [
    ["--acme-domain=a.test", "--console-listen=0.0.0.0:8443"],
    "https://a.test",
    "https://a.test:8443",
  ],
  [[...two, "--console-listen=0.0.0.0:8443"], "https://a.test", "https://b.test:8443"],
  [[...two, "--console-listen=off"], "https://a.test", null],
  [[...two, "--listen=[::]:8443"], "https://a.test:8443", null],
  // Only this machine reaches it, or its port is not known yet.
  [[...two, "--listen=127.0.0.1:8443"], null, null],
  [[...two, "--listen=0.0.0.0:0"], null, null],
  [[...two, "--public-url=https://b.test"], "https://b.test", null],
  [[...two, "--console-url=https://b.test"], "https://a.test", "https://b.test"],
  [[...two, "--console-url=https://localhost:8081"], "https://a.test", "https://localhost:8081"],
  // The proxy has a certificate of its own.
  [[...two, "--public-url=https://c.test", "--trust-proxy=10.0.0.1"], "https://c.test", null],
  [["--listen=127.0.0.1:443", "--console-listen=127.0.0.1:8443"], null, null],
])("the URLs of %p are %p and %p", (args, publicUrl, consoleUrl) => {
  const config = configOf(args);
  expect([config.publicUrl, config.consoleUrl]).toEqual([publicUrl, consoleUrl]);
});

function configOf(args: readonly string[]): ServeConfig {
  const command = serveCommand().action(() => {});
  command.parse(args, { from: "user" });
  return readConfig(command.opts<ServeOptions>(), command);
}

const files = ["--tls-cert=a", "--tls-key=b"];
const read = "--read-listen=0.0.0.0:8444";
test.each<[readonly string[], string]>([
  [[...two, read], "https://a.test:8444/feed"],
  [[...two, "--read-listen=[::]:8444"], "https://a.test:8444/feed"],
  [[...two, read, "--public-url=https://b.test"], "https://b.test:8444/feed"],
  [[...two, read, "--listen=127.0.0.1:8443"], "https://a.test:8444/feed"],
  [[...files, read, "--public-url=https://c.test:8443"], "https://c.test:8444/feed"],
  [[...files, read], "https://0.0.0.0:8444/feed"],
  [[...two, "--read-listen=127.0.0.1:8444"], "https://127.0.0.1:8444/feed"],
  // The proxy's name and port for the feed are not known.
  [["--trust-proxy=10.0.0.1", read, "--public-url=https://c.test"], "http://0.0.0.0:8444/feed"],
])("the URL of the feed with %p is %s", (args, url) => {
  const config = configOf(args);
  expect(feedUrlOf(config, config.readListen as Address)).toBe(url);
});

test("the flags can come from the environment, and set the default address", async () => {
  const env = { SIGNALBOX_ACME_DOMAIN: "signals.example.com, console.example.com" };
  const { stdout } = await cliHere(["config", "--json"], { env });
  const settings = JSON.parse(stdout) as { flag: string; value: string; source: string }[];
  const find = (flag: string) => settings.find((setting) => setting.flag === flag);
  expect(find("--acme-domain")).toMatchObject({ value: env.SIGNALBOX_ACME_DOMAIN });
  expect(find("--listen")).toMatchObject({ value: "0.0.0.0:443", source: "default" });
});
