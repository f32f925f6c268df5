/** The certificate: the one in use, its renewal, and the files of the next start. */
import { existsSync } from "node:fs";
import type { ServeConfig } from "../serve/config.ts";
import { messageOf } from "../lib/errors.ts";
import { DAY_MS } from "../lib/text/time.ts";
import { formatTime, plural } from "../lib/text/words.ts";
import { acmeFiles, readAccountKey } from "../http/acme/files.ts";
import type { AcmePlan } from "../http/acme/plan.ts";
import type { AcmeStatus } from "../http/acme/report.ts";
import { hostOf } from "../http/address.ts";
import { type Certificate, loadCertificate, missingNames } from "../http/tls.ts";
import type { ServerStatus } from "../ops/server.ts";
import {
  type Context,
  type Finding,
  ok,
  problem,
  SETTINGS_ADVICE,
  stop,
  warning,
} from "./finding.ts";

/** Time to renew it. */
const SOON_MS = 14 * DAY_MS;

type Renewing = Pick<
  AcmeStatus,
  "directory" | "missing" | "failure" | "is_listening" | "next_attempt_at" | "held_until"
>;

type Known = Pick<Context, "config" | "dataDir" | "server" | "now">;

/** What a start with this configuration should warn of; null: the certificate, if there is one, is in time. */
export function findExpired(config: ServeConfig): Finding | null {
  const known = { config, dataDir: config.dataDir, server: null, now: Date.now() };
  return checkCertificate(known).find(({ stopsSignals }) => stopsSignals === true) ?? null;
}

export function checkCertificate(context: Known): readonly Finding[] {
  const refusal = context.server?.certificate_refusal ?? null;
  if (refusal === null) return [checkFiles(context)];
  const inUse = checkFiles({ ...context, config: null });
  const rejected = problem(
    `The new certificate is not in use, and a restart may fail: ${refusal}`,
    "correct that; the server then takes the certificate without a restart",
  );
  return inUse.severity === "ok" ? [rejected] : [inUse, rejected];
}

/** The files, as far as they are known, and what a running server still uses. */
function checkFiles({ config, dataDir, server, now }: Known): Finding {
  const { tls = null, acme = null } = config ?? {};
  const isObtained = config !== null && (acme ?? server?.acme ?? null) !== null;
  const unusable = isObtained ? checkObtained(dataDir, server) : null;
  if (unusable !== null) return unusable;
  const isMissing =
    tls !== null && acme !== null && (!existsSync(tls.certFile) || isWaiting(server));
  const loaded = tls === null || isMissing ? null : loadCertificate(tls);
  const expiries = [loaded?.expiresAt, server?.certificate_expires_at].filter((at) => at != null);
  const expiresAt = expiries.length === 0 ? null : Math.min(...expiries);
  const renewing = server?.acme ?? (acme && untried(acme, loaded));
  const found = checkTime(expiresAt, renewing, server, now);
  if (expiresAt === null) {
    if (found !== null) return found;
    if (isMissing) return ok(`None yet: the server orders it from ${acme.directory}.`);
    const { certFile } = acmeFiles(dataDir);
    if (config !== null && server === null && existsSync(certFile)) {
      return warning(
        `Not checked: there is ${certFile}, but no --acme-domain.`,
        `${SETTINGS_ADVICE}, such as --acme-domain`,
      );
    }
    return ok("None: a proxy terminates HTTPS, or clients are local.");
  }
  const isLacking = renewing !== null && renewing.missing.length > 0;
  const misnamed = loaded === null || isLacking ? null : checkNames(loaded, config);
  const days = plural(Math.floor((expiresAt - now) / DAY_MS), "day");
  return misnamed ?? found ?? ok(`It expires in ${days}, at ${formatTime(expiresAt)}.`);
}

/** Null: it is in time. While orders succeed, it is renewed, however short its lifetime is. */
function checkTime(
  expiresAt: number | null,
  renewing: Renewing | null,
  server: ServerStatus | null,
  now: number,
): Finding | null {
  const isExpired = expiresAt !== null && expiresAt < now;
  const expired = `The certificate expired at ${formatTime(expiresAt)}, and clients cannot connect`;
  if (renewing === null) {
    const next = "renew it and replace its files; the server takes them without a restart";
    if (isExpired) return stop(`${expired}.`, next);
    if (expiresAt === null || expiresAt >= now + SOON_MS) return null;
    return warning(`The certificate expires at ${formatTime(expiresAt)}.`, next);
  }
  const { directory, missing, failure } = renewing;
  const isWaitingNow = expiresAt === null && server !== null;
  const find = isExpired || isWaitingNow ? stop : missing.length > 0 ? problem : warning;
  const lacks = `The certificate lacks ${missing.join(", ")}`;
  const wrong = isExpired ? expired : missing.length > 0 && expiresAt !== null ? lacks : null;
  if (failure === null) {
    if (wrong !== null) return find(`${wrong}.`, "keep the server running: it orders another one");
    const ordered = `There is no certificate yet: the server orders it from ${directory}.`;
    return isWaitingNow ? find(ordered, "wait for it") : null;
  }
  const state =
    expiresAt === null ? "There is no certificate" : (wrong ?? "The certificate is not renewed");
  return find(`${state}: ${describeFailure(renewing)}`, `fix the cause${describeRetry(renewing)}`);
}

function describeFailure({ failure, is_listening: isListening }: Renewing): string {
  const at = formatTime(failure?.at ?? null);
  const what = isListening
    ? `the order of ${at} failed`
    : `since ${at} this server cannot listen for challenges`;
  return `${what}: ${failure?.reason}`;
}

function describeRetry({ next_attempt_at: nextAt, held_until: heldUntil }: Renewing): string {
  const at = formatTime(nextAt);
  return heldUntil === null
    ? `, then run: systemctl reload signalbox; otherwise the server tries again at ${at}`
    : `; the directory asked to wait, so the server tries again at ${at}`;
}

/** Whether the server waits for its first certificate. */
function isWaiting(server: ServerStatus | null): boolean {
  return server?.acme != null && server.certificate_expires_at === null;
}

/** What is wrong with the files that `--acme-domain` keeps; null: nothing, or they are still to be made. */
function checkObtained(dataDir: string, server: ServerStatus | null): Finding | null {
  try {
    readAccountKey(dataDir);
  } catch (error) {
    return warning(messageOf(error), "then run: systemctl reload signalbox");
  }
  const files = acmeFiles(dataDir);
  if (server === null ? !existsSync(files.certFile) : isWaiting(server)) return null;
  try {
    loadCertificate(files);
    return null;
  } catch (error) {
    const reason = messageOf(error);
    if (server === null) return problem(reason, "start the server, which orders another one");
    return warning(
      `${reason} The server uses the one in memory, and writes it again every few seconds.`,
      "look in the server's log why it cannot; do not restart the server before it can",
    );
  }
}

/** Without a server, nothing has failed. */
function untried({ domains, directory }: AcmePlan, loaded: Certificate | null): Renewing {
  const missing = missingNames(domains, loaded);
  const never = { failure: null, next_attempt_at: null, held_until: null };
  return { directory, missing, is_listening: true, ...never };
}

function checkNames(certificate: Certificate, config: ServeConfig | null): Finding | null {
  // Behind a proxy, clients see the proxy's certificate.
  if (config === null || config.tls === null || config.trustedProxies.length > 0) return null;
  const { publicUrl, consoleUrl, acme, tls } = config;
  const hosts = [publicUrl, consoleUrl].flatMap((url) => (url === null ? [] : [hostOf(url)]));
  const all = new Set([...hosts, ...(acme?.domains ?? [])]);
  const missing = missingNames([...all], certificate);
  if (missing.length === 0) return null;
  return problem(
    `${tls.certFile} is not valid for ${missing.join(" and ")}.`,
    acme === null
      ? "get a certificate for every name, or correct --public-url and --console-url"
      : "give every name with --acme-domain, and restart the server",
  );
}
