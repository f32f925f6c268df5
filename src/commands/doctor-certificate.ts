/** What `signalbox doctor` finds out about the certificate. */
import { hostOf } from "../net/address.ts";
import { existsSync } from "node:fs";
import type { ServeConfig } from "../config.ts";
import { messageOf } from "../domain/errors.ts";
import { DAY_MS } from "../domain/time.ts";
import { acmeFiles, type AcmePlan } from "../net/acme/plan.ts";
import { checkAccountKey } from "../net/acme/store.ts";
import { type Certificate, isCertificateOf, loadCertificate } from "../net/tls.ts";
import type { ServerStatus } from "../ops/server.ts";
import { attentionToCertificate, attentionToRefusal, type Renewing } from "./attention.ts";
import {
  type Facts,
  type Finding,
  judge,
  ok,
  problem,
  SETTINGS_ADVICE,
  warning,
} from "./finding.ts";
import { formatTime, plural } from "./print.ts";

/** The files, and what a running server still uses. */
export function checkCertificate({ config, server, now }: Facts): Finding {
  const { tls, acme, trustedProxies } = config;
  const refusal = attentionToRefusal(server);
  if (refusal.length > 0) return judge(refusal, "problem", "");
  const isObtained = acme !== null || server?.acme != null;
  const unusable = isObtained ? problemOfObtained(config.dataDir, server) : null;
  if (unusable !== null) return unusable;
  const isMissing =
    tls !== null && acme !== null && (!existsSync(tls.certFile) || isWaiting(server));
  const loaded = tls === null || isMissing ? null : loadCertificate(tls);
  const expiries = [loaded?.expiresAt, server?.certificate_expires_at].filter((at) => at != null);
  const expiresAt = expiries.length === 0 ? null : Math.min(...expiries);
  const renewing = server?.acme ?? (acme && untried(acme, loaded));
  const attention = attentionToCertificate(expiresAt, renewing, now);
  if (expiresAt === null) {
    if (isMissing && attention.length === 0)
      return ok(`None yet: the server orders it from ${acme.directory}.`);
    const { certFile } = acmeFiles(config.dataDir);
    if (server === null && existsSync(certFile)) {
      return warning(
        `Not checked: there is ${certFile}, but no --acme-domain.`,
        `${SETTINGS_ADVICE}, such as --acme-domain`,
      );
    }
    return judge(attention, "problem", "None: a proxy terminates HTTPS, or clients are local.");
  }
  // Behind a proxy, clients see the proxy's certificate.
  const missing = loaded === null || trustedProxies.length > 0 ? [] : missingHosts(loaded, config);
  const isLacking = renewing !== null && renewing.missing.length > 0;
  if (tls !== null && missing.length > 0 && !isLacking) {
    return problem(
      `${tls.certFile} is not valid for ${missing.join(" and ")}.`,
      acme === null
        ? "get a certificate for every name, or correct --public-url and --console-url"
        : "give every name with --acme-domain, and restart the server",
    );
  }
  return judge(
    attention,
    expiresAt < now || isLacking ? "problem" : "warning",
    `It expires in ${plural(Math.floor((expiresAt - now) / DAY_MS), "day")}, at ${formatTime(expiresAt)}.`,
  );
}

/** Whether the server waits for its first certificate. */
function isWaiting(server: ServerStatus | null): boolean {
  return server?.acme != null && server.certificate_expires_at === null;
}

/** What is wrong with the files that `--acme-domain` keeps; null: nothing, or they are still to be made. */
function problemOfObtained(dataDir: string, server: ServerStatus | null): Finding | null {
  try {
    checkAccountKey(dataDir);
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
function untried({ domains }: AcmePlan, loaded: Certificate | null): Renewing {
  const missing = domains.filter((name) => loaded !== null && !isCertificateOf(name, loaded));
  return { missing, failure: null, next_attempt_at: null, held_until: null };
}

function missingHosts(
  certificate: Certificate,
  { publicUrl, consoleUrl, acme }: ServeConfig,
): string[] {
  const hosts = [publicUrl, consoleUrl].flatMap((url) => (url === null ? [] : [hostOf(url)]));
  const all = new Set([...hosts, ...(acme?.domains ?? [])]);
  return [...all].filter((host) => !isCertificateOf(host, certificate));
}
