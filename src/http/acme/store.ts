/** Where a server keeps what ACME needs, and finds the answers to challenges. */
import type { AcmeState } from "./state.ts";

/** What servers share. */
export interface AcmeNews {
  /** PEM, of the key and of the chain; null: none is shared. */
  readonly certificate: string | null;
  /** What another server has saved since the last call; null: nothing. */
  readonly state: AcmeState | null;
}

export interface AcmeStore {
  /** How often to look at the clock, which may have been set, at news, and whether another server's order has ended. */
  readonly lookEveryMs: number;
  news(): Promise<AcmeNews>;
  /** `text`: PEM, of the key and of the chain. It is in the folder after that. */
  saveCertificate(text: string): Promise<void>;
  saveState(state: AcmeState): Promise<void>;
  /** PEM. Makes the key with the first order. */
  accountKey(): Promise<string>;
  /** Answers the challenge until the returned function is called. */
  offer(token: string, keyAuthorization: string): Promise<() => Promise<void>>;
  /** Null for an unknown token. */
  answerTo(token: string): Promise<string | null>;
  /** Returns false, and does nothing, while another server orders. `lost` is aborted when another one may begin. */
  alone(work: (lost: AbortSignal) => Promise<void>): Promise<boolean>;
}
