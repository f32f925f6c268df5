/** The certificate files: read, checked against each other, and read again when they change. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { UserError, systemCode } from "../domain/errors.ts";

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

/** Throws {@link UserError} where a file cannot be read, is not PEM, or does not fit the other. */
export function loadCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const cert = readPem(certFile, "--tls-cert");
  const key = readPem(keyFile, "--tls-key");
  const leaf = parse(() => new X509Certificate(cert), certFile, "a PEM certificate", "--tls-cert");
  const privateKey = parse(() => createPrivateKey(key), keyFile, "a PEM private key", "--tls-key");
  if (!leaf.checkPrivateKey(privateKey)) {
    throw new UserError(
      `${keyFile} is not the key of ${certFile}: give the two files of one certificate with --tls-cert and --tls-key.`,
    );
  }
  return { cert, key, expiresAt: Date.parse(leaf.validTo) };
}

function readPem(file: string, flag: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UserError(
      `${file} cannot be read (${systemCode(error)}): name a readable PEM file with ${flag}.`,
    );
  }
}

function parse<T>(read: () => T, file: string, what: string, flag: string): T {
  try {
    return read();
  } catch {
    throw new UserError(`${file} is not ${what}: name the right file with ${flag}.`);
  }
}
