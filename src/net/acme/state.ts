/** What is kept in `<data>/acme/`: the account's key, the certificate with its key, and what the next order depends on. */
import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { syncPath } from "../../files.ts";
import { loadCertificate } from "../tls.ts";
import { type IssuedCertificate, makeKey } from "./order.ts";
import { acmeFiles, acmeFolder } from "./plan.ts";
import { type Span, WAIT_MS_MAX } from "./schedule.ts";

const time = Type.Number();

/** Times are epoch milliseconds. */
const State = Type.Object({
  /** The URL of the directory that the rest is about. */
  directory: Type.String(),
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

export function initialState(directory: string, issuer: string | null = null): AcmeState {
  return {
    directory,
    issuer,
    failures: 0,
    failure: null,
    retry_at: 0,
    held_until: 0,
    renewal: null,
  };
}

/** The certificate in use, as far as its renewal is concerned. */
export interface StoredCertificate {
  readonly pem: string;
  readonly fingerprint: string;
  readonly validity: Span;
  readonly leaf: X509Certificate;
}

export class AcmeStore {
  readonly #dataDir: string;

  /** Creates the folder. */
  constructor(dataDir: string) {
    this.#dataDir = dataDir;
    mkdirSync(acmeFolder(dataDir), { recursive: true, mode: 0o700 });
  }

  /** Null if there is none, or it is damaged. */
  readState(now: number): AcmeState | null {
    try {
      const state: unknown = JSON.parse(readFileSync(this.#path("state.json"), "utf8"));
      if (!Value.Check(State, state)) return null;
      const latest = now + WAIT_MS_MAX;
      return {
        ...state,
        retry_at: Math.min(state.retry_at, latest),
        held_until: Math.min(state.held_until, latest),
      };
    } catch {
      return null;
    }
  }

  saveState(state: AcmeState): void {
    writePrivately(this.#path("state.json"), `${JSON.stringify(state, null, 2)}\n`);
  }

  /** PEM. Makes the key with the first order. */
  accountKey(): string {
    const path = this.#path("account-key.pem");
    if (existsSync(path)) return readFileSync(path, "utf8");
    const key = makeKey();
    writePrivately(path, key);
    return key;
  }

  /** Returns null if there is none. Throws `UserError` if it cannot be used. */
  readCertificate(): StoredCertificate | null {
    const files = acmeFiles(this.#dataDir);
    if (!existsSync(files.certFile)) return null;
    const { cert: pem, expiresAt } = loadCertificate(files);
    const leaf = new X509Certificate(pem);
    const validity = { from: Date.parse(leaf.validFrom), to: expiresAt };
    return { pem, fingerprint: leaf.fingerprint256, validity, leaf };
  }

  saveCertificate({ key, chain }: IssuedCertificate): void {
    const { certFile } = acmeFiles(this.#dataDir);
    writePrivately(certFile, `${key.trim()}\n${chain.trim()}\n`);
  }

  #path(name: string): string {
    return join(acmeFolder(this.#dataDir), name);
  }
}

/** Replaces the file at once, or leaves the old one. */
function writePrivately(path: string, text: string): void {
  const fresh = `${path}.new`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, text, { mode: 0o600, flag: "wx", flush: true });
  renameSync(fresh, path);
  syncPath(dirname(path));
}
