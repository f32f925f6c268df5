/** The certificate files: read, checked against each other, and read again when they change. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { UserError, systemCode } from "../domain/errors.ts";
import { shellQuoted } from "../domain/shell.ts";

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** PEM texts, the leaf's certificate first. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/**
 * Throws {@link UserError} where a file cannot be read, is not PEM, or does not fit the other, and
 * where others have the key.
 */
export function loadCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const cert = readPem(certFile, "--tls-cert", () => {});
  const key = readPem(keyFile, "--tls-key", refuseOpenKey);
  const leaf = parse(() => new X509Certificate(cert), certFile, "a PEM certificate", "--tls-cert");
  const privateKey = parse(() => createPrivateKey(key), keyFile, "a PEM private key", "--tls-key");
  if (!leaf.checkPrivateKey(privateKey)) {
    throw new UserError(
      `${keyFile} is not the key of ${certFile}: give the two files of one certificate with --tls-cert and --tls-key.`,
    );
  }
  return { cert, key, expiresAt: Date.parse(leaf.validTo) };
}

/** Whether a client that asks for this name, or IP address, would take the certificate for it. */
export function isCertificateOf(name: string, { cert }: Pick<Certificate, "cert">): boolean {
  const leaf = new X509Certificate(cert);
  return (isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name)) !== undefined;
}

/** What a file's rights are judged by. */
interface Rights {
  readonly mode: number;
  readonly uid: number;
}

/**
 * Whether anybody beside its owner has a key file. A group may read one that is root's where we are
 * not root: that is how Debian's group ssl-cert and systemd's credentials hand a key to a service.
 */
export function isOpenToOthers({ mode, uid }: Rights, ourUid: number): boolean {
  const isHandedToUs = uid === 0 && ourUid !== 0;
  return (mode & (isHandedToUs ? 0o037 : 0o077)) !== 0;
}

function refuseOpenKey(file: string, rights: Rights): void {
  const ourUid = process.geteuid?.() ?? 0;
  if (!isOpenToOthers(rights, ourUid)) return;
  const mode = (rights.mode & 0o7777).toString(8).padStart(4, "0");
  const closed = rights.uid === 0 && ourUid !== 0 ? "640" : "600";
  throw new UserError(
    `${file} is a private key that other users can access (mode ${mode}). Run: chmod ${closed} ${shellQuoted(file)}`,
  );
}

/** Judges the very file that it reads, whatever its name comes to mean in between. */
function readPem(
  file: string,
  flag: string,
  judge: (file: string, rights: Rights) => void,
): string {
  let fd: number | null = null;
  try {
    fd = openSync(file, "r");
    judge(file, fstatSync(fd));
    return readFileSync(fd, "utf8");
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(
      `${file} cannot be read (${systemCode(error)}): name a readable PEM file with ${flag}.`,
    );
  } finally {
    if (fd !== null) closeSync(fd);
  }
}

function parse<T>(read: () => T, file: string, what: string, flag: string): T {
  try {
    return read();
  } catch {
    throw new UserError(`${file} is not ${what}: name the right file with ${flag}.`);
  }
}
