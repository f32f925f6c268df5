/** Reads the certificate files and checks them against each other. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { closeSync, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { UserError, systemCode } from "../lib/errors.ts";
import { shellQuoted } from "../lib/text/shell.ts";

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** What to do if a file cannot be used; null: the caller says it; not given: name another one with `--tls-cert` or `--tls-key`. */
  readonly advice?: null;
}

/** PEM texts, the leaf's certificate first. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** Epoch milliseconds. */
  readonly startsAt: number;
  readonly expiresAt: number;
}

/**
 * Throws {@link UserError} if a file cannot be read or is not PEM, if the two do not belong together, or if
 * other users can access the key.
 */
export function loadCertificate({ certFile, keyFile, advice }: CertificateFiles): Certificate {
  const explained = (problem: string, ownAdvice: string): string =>
    advice === null ? `${problem}.` : `${problem}: ${ownAdvice}.`;
  const { text: cert } = readFile(certFile, (problem) =>
    explained(problem, readable("--tls-cert")),
  );
  const { text: key, stats } = readFile(keyFile, (problem) =>
    explained(problem, readable("--tls-key")),
  );
  refuseOpenKey(keyFile, stats);
  const leaf = parse(
    () => new X509Certificate(cert),
    explained(`${certFile} is not a PEM certificate`, right("--tls-cert")),
  );
  const privateKey = parse(
    () => createPrivateKey(key),
    explained(`${keyFile} is not a PEM private key`, right("--tls-key")),
  );
  if (!leaf.checkPrivateKey(privateKey)) {
    const both = "give the two files of one certificate with --tls-cert and --tls-key";
    throw new UserError(explained(`${keyFile} is not the key of ${certFile}`, both));
  }
  const [startsAt, expiresAt] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  return { cert, key, startsAt, expiresAt };
}

/** Reads the PEM file of a certificate to trust. `flag`: the option that names it. Throws {@link UserError}. */
export function readTrusted(file: string, flag: string): string {
  let pem: string;
  try {
    pem = readFileSync(file, "utf8");
  } catch (error) {
    throw new UserError(
      `${file} cannot be read (${systemCode(error)}): name a readable PEM file with ${flag}.`,
    );
  }
  parse(() => new X509Certificate(pem), `${file} is not a PEM certificate: ${right(flag)}.`);
  return pem;
}

/** Returns the names and IP addresses that the certificate is not valid for; none without one. */
export function missingNames(
  names: readonly string[],
  certificate: Pick<Certificate, "cert"> | null,
): string[] {
  if (certificate === null) return [];
  const leaf = new X509Certificate(certificate.cert);
  return names.filter(
    (name) => (isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name)) === undefined,
  );
}

type Permissions = Pick<Stats, "mode" | "uid">;

/**
 * Whether users other than the owner can access a key file. If we are not root, a group may read root's
 * file: Debian's group ssl-cert and systemd's credentials give a key to a service this way.
 */
export function isOpenToOthers({ mode, uid }: Permissions, ourUid: number): boolean {
  const isHandedToUs = uid === 0 && ourUid !== 0;
  return (mode & (isHandedToUs ? 0o037 : 0o077)) !== 0;
}

function refuseOpenKey(file: string, permissions: Permissions): void {
  const ourUid = process.geteuid?.() ?? 0;
  if (!isOpenToOthers(permissions, ourUid)) return;
  const mode = (permissions.mode & 0o7777).toString(8).padStart(4, "0");
  const closed = permissions.uid === 0 && ourUid !== 0 ? "640" : "600";
  throw new UserError(
    `${file} is a private key that other users can access (mode ${mode}). Run: chmod ${closed} ${shellQuoted(file)}`,
  );
}

/** Both from one descriptor: the name may stand for another file a moment later. */
function readFile(
  file: string,
  explained: (problem: string) => string,
): { text: string; stats: Stats } {
  let fd: number | null = null;
  try {
    fd = openSync(file, "r");
    return { stats: fstatSync(fd), text: readFileSync(fd, "utf8") };
  } catch (error) {
    throw new UserError(explained(`${file} cannot be read (${systemCode(error)})`));
  } finally {
    if (fd !== null) closeSync(fd);
  }
}

const readable = (flag: string) => `name a readable PEM file with ${flag}`;
const right = (flag: string) => `name the right file with ${flag}`;

function parse<T>(read: () => T, problem: string): T {
  try {
    return read();
  } catch {
    throw new UserError(problem);
  }
}
