/** The files in `<data>/acme/`: the account's key, the certificate with its key, and the state. */
import { createPrivateKey } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { open, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { messageOf, systemCode, UserError } from "../../lib/errors.ts";
import { type Certificate, type CertificateFiles, loadCertificate } from "../tls.ts";
import { makeKey } from "./order.ts";
import { type AcmeState, State } from "./state.ts";

function pathsIn(dataDir: string) {
  const folder = join(dataDir, "acme");
  return {
    folder,
    certificate: join(folder, "certificate.pem"),
    accountKey: join(folder, "account-key.pem"),
    state: join(folder, "state.json"),
  };
}

/** Both in one file, so that they can only be replaced together. */
export function acmeFiles(dataDir: string): CertificateFiles {
  const { certificate: file } = pathsIn(dataDir);
  return { certFile: file, keyFile: file, advice: null };
}

/** Throws `UserError` if something else has the name of the folder or of a file in it. */
export function requireFolder(dataDir: string): void {
  const { folder, ...files } = pathsIn(dataDir);
  // A link to nothing, too.
  const isThere = lstatSync(folder, { throwIfNoEntry: false }) !== undefined;
  if (isThere && !existsSync(`${folder}/`)) throw inTheWay(folder, "folder");
  for (const file of Object.values(files)) {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) throw inTheWay(file, "file");
  }
}

function inTheWay(path: string, kind: string): UserError {
  return new UserError(`${path} is not a ${kind}: move away what has this name, and start again.`);
}

/** Throws `UserError` as {@link requireFolder} does. */
export function makeFolder(dataDir: string): void {
  requireFolder(dataDir);
  mkdirSync(pathsIn(dataDir).folder, { recursive: true, mode: 0o700 });
}

/** Returns null if there is none, or none that can be used: another one is ordered then. */
export function readCertificate(
  dataDir: string,
  onUnusable: (reason: string) => void = () => {},
): Certificate | null {
  const files = acmeFiles(dataDir);
  try {
    return existsSync(files.certFile) ? loadCertificate(files) : null;
  } catch (error) {
    onUnusable(messageOf(error));
    return null;
  }
}

/** `text`: PEM, of the key and of the chain. */
export function saveCertificate(dataDir: string, text: string): Promise<void> {
  return replaceFile(pathsIn(dataDir).certificate, text);
}

/** Returns PEM, or null if there is none. Throws `UserError` if it cannot be used. */
export function readAccountKey(dataDir: string): string | null {
  const { accountKey: path } = pathsIn(dataDir);
  if (!existsSync(path)) return null;
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

/** Makes the key with the first order. */
export async function accountKey(dataDir: string): Promise<string> {
  const kept = readAccountKey(dataDir);
  if (kept !== null) return kept;
  const key = makeKey();
  await replaceFile(pathsIn(dataDir).accountKey, key);
  return key;
}

/** Null if there is none, or it is damaged. */
export function readState(dataDir: string): AcmeState | null {
  try {
    const state: unknown = JSON.parse(readFileSync(pathsIn(dataDir).state, "utf8"));
    return Value.Check(State, state) ? state : null;
  } catch {
    return null;
  }
}

export function saveState(dataDir: string, state: AcmeState): Promise<void> {
  return replaceFile(pathsIn(dataDir).state, `${JSON.stringify(state, null, 2)}\n`);
}

/** Replaces the file at once, or leaves the old one. The thread that takes signals does not wait for the disk. */
async function replaceFile(path: string, text: string): Promise<void> {
  const fresh = `${path}.new`;
  await rm(fresh, { force: true });
  try {
    await writeFile(fresh, text, { flag: "wx", mode: 0o600, flush: true });
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
  await using folder = await open(dirname(path), "r");
  await folder.sync();
}
