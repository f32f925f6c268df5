/** What is said of a certificate that a directory issues. `doctor.test.ts` has those that users provide. */
import { expect, test } from "bun:test";
import { checkCertificate } from "../../src/checks/certificate.ts";
import type { AcmeStatus } from "../../src/http/acme/report.ts";
import { DAY_MS, HOUR_MS } from "../../src/lib/text/time.ts";
import type { ServerStatus } from "../../src/ops/server.ts";
import { temporaryFolder } from "../kit/setup.ts";

const NOW = Date.UTC(2026, 10, 22, 12);
const FAILED = "the order of 2026-11-22 12:00:00Z failed: not today";
const RELOAD = "then run: systemctl reload signalbox; otherwise the server tries again";

const failing: AcmeStatus = {
  domains: ["a.test", "b.test"],
  missing: [],
  directory: "https://ca.test",
  http_listen: "0.0.0.0:80",
  next_attempt_at: NOW + HOUR_MS,
  held_until: null,
  failure: { at: NOW, reason: "not today" },
  is_listening: true,
};
const [fine, lacking] = [{ failure: null }, { missing: ["b.test"] }];
const [never, tomorrow, ago] = [null, NOW + DAY_MS, NOW - DAY_MS];

test.each<[acme: Partial<AcmeStatus>, expiresAt: number | null, said: string]>([
  [fine, tomorrow, "ok: It expires in 1 day, at 2026-11-23 12:00:00Z. null"],
  [
    fine,
    never,
    "stop: There is no certificate yet: the server orders it from https://ca.test. wait",
  ],
  [{}, never, `stop: There is no certificate: ${FAILED} fix the cause, ${RELOAD}`],
  [
    { held_until: NOW + HOUR_MS },
    never,
    `stop: There is no certificate: ${FAILED} fix the cause; the directory asked to wait, so the server tries again at 2026-11-22 13:00:00Z`,
  ],
  [{}, tomorrow, `warning: The certificate is not renewed: ${FAILED} fix the cause, ${RELOAD}`],
  [
    { is_listening: false },
    tomorrow,
    "warning: The certificate is not renewed: since 2026-11-22 12:00:00Z this server cannot listen for challenges: not today fix the cause",
  ],
  [
    { ...fine, ...lacking },
    tomorrow,
    "problem: The certificate lacks b.test. keep the server running: it orders another one",
  ],
  [lacking, tomorrow, `problem: The certificate lacks b.test: ${FAILED} fix the cause`],
  [
    fine,
    ago,
    "stop: The certificate expired at 2026-11-21 12:00:00Z, and clients cannot connect. keep the server running",
  ],
  [
    {},
    ago,
    `stop: The certificate expired at 2026-11-21 12:00:00Z, and clients cannot connect: ${FAILED} fix the cause`,
  ],
])("%j, expires at %p: %s", (acme, expiresAt, said) => {
  const server = {
    acme: { ...failing, ...acme },
    certificate_expires_at: expiresAt,
  } as unknown as ServerStatus;
  const context = { config: null, dataDir: temporaryFolder(), server, now: NOW };
  const [found, ...others] = checkCertificate(context);
  const severity = found?.stopsSignals === true ? "stop" : found?.severity;
  expect(`${severity}: ${found?.sentence} ${found?.next}`).toStartWith(said);
  expect(others).toEqual([]);
});

test("new files that cannot be used are a problem, because a restart would fail", () => {
  const server = {
    acme: null,
    certificate_expires_at: NOW + 30 * DAY_MS,
    certificate_refusal: "key.pem is not the key of cert.pem",
  } as unknown as ServerStatus;
  const context = { config: null, dataDir: temporaryFolder(), server, now: NOW };
  const sentence =
    "The new certificate is not in use, and a restart may fail: key.pem is not the key of cert.pem";
  expect(checkCertificate(context)).toMatchObject([{ severity: "problem", sentence }]);
});
