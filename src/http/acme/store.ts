/** The files in `<data>/acme/`: the account's key, the certificate with its key, and the state. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import type { Logger } from "pino";
import { messageOf, systemCode, UserError } from "../../lib/errors.ts";
import { loadCertificate } from "../tls.ts";
import { type IssuedCertificate, makeKey } from "./order.ts";
import { acmeFiles, acmeFolder } from "./plan.ts";
import type { Span } from "./schedule.ts";
import { type AcmeState, State } from "./state.ts";

const ACCOUNT_KEY = "account-key.pem";
const STATE = "state.json";

/** The certificate in use, as far as its renewal is concerned. */
export interface StoredCertificate {
  readonly fingerprint: string;
  readonly validity: Span;
  readonly lifetimeMs: number;
  readonly leaf: X509Certificate;
}

export function isValid(certificate: StoredCertificate | null, now: number): boolean {
  return certificate !== null && now < certificate.validity.to;
}

/** Returns null if there is none. Throws `UserError` if it cannot be used. */
export function readCertificate(dataDir: string): StoredCertificate | null {
  const files = acmeFiles(dataDir);
  if (!existsSync(files.certFile)) return null;
  const { cert, expiresAt } = loadCertificate(files);
  const leaf = new X509Certificate(cert);
  const from = Date.parse(leaf.validFrom);
  const validity = { from, to: expiresAt };
  return { fingerprint: leaf.fingerprint256, validity, lifetimeMs: expiresAt - from, leaf };
}

/** Throws `UserError` if something else has the name of the folder or of a file in it. */
export function requireFolder(dataDir: string): void {
  const folder = acmeFolder(dataDir);
  // A link to nothing, too.
  if (lstatSync(folder, { throwIfNoEntry: false }) !== undefined && !existsSync(`${folder}/`)) {
    throw new UserError(
      `${folder} is not a folder: move away what has this name, and start again.`,
    );
  }
  const { certFile } = acmeFiles(dataDir);
  for (const file of [certFile, join(folder, STATE), join(folder, ACCOUNT_KEY)]) {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) {
      throw new UserError(`${file} is not a file: move away what has this name, and start again.`);
    }
  }
}

/** Throws `UserError` if there is an account's key, and it cannot be used. */
export function checkAccountKey(dataDir: string): void {
  const path = join(acmeFolder(dataDir), ACCOUNT_KEY);
  if (existsSync(path)) readAccountKey(path);
}

/** Returns null without a certificate, and for one that cannot be used. */
export function findUsable(dataDir: string, log: Logger): StoredCertificate | null {
  try {
    return readCertificate(dataDir);
  } catch (error) {
    log.warn(
      { reason: messageOf(error) },
      "the stored certificate cannot be used: another one is ordered",
    );
    return null;
  }
}

/** Otherwise it would be found with the next renewal. */
export function reportAccountKey(dataDir: string, log: Logger): void {
  try {
    checkAccountKey(dataDir);
  } catch (error) {
    log.error({ reason: messageOf(error) }, "no certificate can be ordered with the account's key");
  }
}

export class AcmeStore {
  readonly #dataDir: string;

  /** Creates the folder. Throws `UserError`. */
  constructor(dataDir: string) {
    this.#dataDir = dataDir;
    requireFolder(dataDir);
    mkdirSync(acmeFolder(dataDir), { recursive: true, mode: 0o700 });
  }

  /** Null if there is none, or it is damaged. */
  readState(): AcmeState | null {
    try {
      const state: unknown = JSON.parse(readFileSync(this.#path(STATE), "utf8"));
      return Value.Check(State, state) ? state : null;
    } catch {
      return null;
    }
  }

  saveState(state: AcmeState): Promise<void> {
    return writePrivately(this.#path(STATE), `${JSON.stringify(state, null, 2)}\n`);
  }

  /** PEM. Makes the key with the first order. */
  async accountKey(): Promise<string> {
    const path = this.#path(ACCOUNT_KEY);
    if (existsSync(path)) return readAccountKey(path);
    const key = makeKey();
    await writePrivately(path, key);
    return key;
  }

  saveCertificate({ key, chain }: IssuedCertificate): Promise<void> {
    return this.rewriteCertificate(`${key.trim()}\n${chain.trim()}\n`);
  }

  /** `text`: of the certificate's file. */
  rewriteCertificate(text: string): Promise<void> {
    return writePrivately(acmeFiles(this.#dataDir).certFile, text);
  }

  #path(name: string): string {
    return join(acmeFolder(this.#dataDir), name);
  }
}

function readAccountKey(path: string): string {
  let key: string;
  try {
    key = readFileSync(path, "utf8");
  } catch (error) {
    throw new UserError(
      `${path} cannot be read (${systemCode(error)}): make the server's user its owner.`,
    );
  }
  try {
    createPrivateKey(key);
    return key;
  } catch {
    throw new UserError(
      `${path} is not a PEM private key: delete it, and the next order makes another account.`,
    );
  }
}

/** Replaces the file at once, or leaves the old one. The thread that takes signals does not wait for the disk. */
async function writePrivately(path: string, text: string): Promise<void> {
  const fresh = `${path}.new`;
  await rm(fresh, { force: true });
  try {
    await writeSynced(fresh, text);
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
  await using folder = await open(dirname(path), "r");
  await folder.sync();
}

async function writeSynced(path: string, text: string): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.writeFile(text);
  await file.sync();
}
