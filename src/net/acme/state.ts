/** What is kept in `<data>/acme/`: the account's key, the certificate with its key, and what the next order depends on. */
import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { systemCode, UserError } from "../../domain/errors.ts";
import { loadCertificate } from "../tls.ts";
import { type IssuedCertificate, makeKey } from "./order.ts";
import { acmeFiles, acmeFolder, type AcmePlan } from "./plan.ts";
import {
  ASK_AGAIN_MS_MAX,
  RETRY_DELAY_MS_MAX,
  retryDelay,
  type Span,
  WAIT_MS_MAX,
} from "./schedule.ts";

const ACCOUNT_KEY = "account-key.pem";
const STATE = "state.json";

const time = Type.Number();

/** Times are epoch milliseconds. */
const State = Type.Object({
  /** The URL of the directory that the rest is about. */
  directory: Type.String(),
  /** The digest of the settings that the last order was made with. */
  plan: Type.String(),
  /** Where the certificate in use came from; null: nowhere yet, or unknown. */
  issuer: Type.Union([Type.String(), Type.Null()]),
  /** Failed orders since the last success. */
  failures: Type.Integer({ minimum: 0 }),
  failure: Type.Union([Type.Object({ at: time, reason: Type.String() }), Type.Null()]),
  /** No order before this time, after a failure or another order. */
  retry_at: time,
  /** The directory asked for no request before this time. */
  held_until: time,
  /** Null: not decided yet. */
  renewal: Type.Union([
    Type.Object({
      /** The fingerprint of the certificate that this is about. */
      certificate: Type.String(),
      /** Its id for the directory; null: it has none. */
      id: Type.Union([Type.String(), Type.Null()]),
      at: time,
      /** As the directory suggested it. */
      window: Type.Union([Type.Object({ from: time, to: time }), Type.Null()]),
      /** When to ask the directory again; null: it has no renewal information. */
      ask_at: Type.Union([time, Type.Null()]),
    }),
    Type.Null(),
  ]),
});
export type AcmeState = Readonly<Static<typeof State>>;
export type Renewal = Readonly<NonNullable<AcmeState["renewal"]>>;

/** Who is asked, and with which settings. */
export type Asked = Pick<AcmeState, "directory" | "plan">;

/** `ca`: the text of `caFile`. */
export function askedOf(plan: AcmePlan, ca: string | null): Asked {
  const text = JSON.stringify({ ...plan, ca });
  return { directory: plan.directory, plan: createHash("sha256").update(text).digest("hex") };
}

export function initialState({ directory, plan }: Asked, issuer: string | null = null): AcmeState {
  return {
    directory,
    plan,
    issuer,
    failures: 0,
    failure: null,
    retry_at: 0,
    held_until: 0,
    renewal: null,
  };
}

/** Returns what still counts of the state that an earlier start kept. */
export function resumeState(kept: AcmeState | null, asked: Asked): AcmeState {
  if (kept?.directory !== asked.directory) return initialState(asked, kept?.issuer);
  if (kept.plan === asked.plan) return kept;
  // The new settings may have removed the cause of a failure, which may be about another name; the directory's
  // own wait stays, with its reason.
  const failure = kept.held_until === 0 ? null : kept.failure;
  return { ...kept, ...asked, failures: 0, failure, retry_at: kept.held_until };
}

/** Returns the state after a failed order. `heldUntil`: no request before then, as the directory asked. */
export function failedState(
  state: AcmeState,
  failure: NonNullable<AcmeState["failure"]>,
  heldUntil: number,
  lifetimeMs: number | null,
): AcmeState {
  const failures = state.failures + 1;
  const backoff = failure.at + retryDelay(failures, lifetimeMs, Math.random);
  const retry_at = Math.round(Math.max(backoff, heldUntil));
  return { ...state, failures, failure, retry_at, held_until: heldUntil };
}

/**
 * Shortens waits that no settings and no directory can have made, and forgets a failure of the future: the clock
 * was set back since. Otherwise the certificate could expire meanwhile.
 */
export function boundWaits(kept: AcmeState, now: number): AcmeState {
  const isOfFuture = kept.failure !== null && kept.failure.at > now;
  const forgotten = { failures: 0, failure: null, retry_at: 0, held_until: 0 };
  const state = isOfFuture ? { ...kept, ...forgotten } : kept;
  const { renewal } = state;
  const held_until = Math.min(state.held_until, now + WAIT_MS_MAX);
  const latest = Math.max(held_until, now + RETRY_DELAY_MS_MAX);
  const ask_at = renewal?.ask_at == null ? null : Math.min(renewal.ask_at, now + ASK_AGAIN_MS_MAX);
  return {
    ...state,
    held_until,
    retry_at: Math.min(state.retry_at, latest),
    renewal: renewal && { ...renewal, ask_at },
  };
}

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
