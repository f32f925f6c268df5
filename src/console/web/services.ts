/** What the pages work with: of storage only what they need, as `store/sqlite/` has it. */
import type { Logger } from "pino";
import type {
  ActivityOwner,
  ActivityWidth,
  Bucket,
  KeyActivity,
  Reject,
  Repeats,
} from "../../domain/activity.ts";
import type { AuditEntry, AuditRecord } from "../../domain/audit.ts";
import type {
  Account,
  Invitation,
  NewPasskey,
  Passkey,
  PasskeyCredential,
  SignInAccount,
} from "../../domain/member.ts";
import type { Registry } from "../../domain/storage.ts";
import type { SignalPage, SignalRequest, StoredSignal } from "../../domain/stored-signal.ts";
import type { FailedSignIns } from "../sign-in/failed-sign-ins.ts";
import type { Sessions } from "./sessions.ts";
import type { SignInThrottle } from "./throttle.ts";

export interface ConsoleServices {
  /** Whose name is in the audit. */
  readonly registryOf: (memberId: string) => Registry;
  readonly members: Members;
  readonly passkeys: Passkeys;
  readonly audit: Audit;
  readonly signals: Signals;
  readonly activity: Activity;
  readonly sessions: Sessions;
  readonly throttle: SignInThrottle;
  readonly failedSignIns: FailedSignIns;
  /** What browsers call the console: scheme, host and port. Known once it is bound. */
  readonly ownOrigin: () => string;
  /** What bots call the public interface. */
  readonly publicUrl: string;
  readonly now: () => number;
  readonly log: Logger;
}

export interface Members {
  /** Null for a link that is unknown, expired or spent, or whose member was removed: one answer. */
  findInvitation(token: string): Invitation | null;
  /** Null where somebody else was first. */
  spendWithPassword(token: string, passwordHash: string): Account | null;
  spendWithPasskey(token: string, passkey: NewPasskey): Account | null;
  setPassword(memberId: string, passwordHash: string): Account;
  signOutEverywhere(memberId: string): Account;
  findForSignIn(email: string): SignInAccount | null;
  /** PHC string, also of a password that was locked; null for none. */
  passwordHash(memberId: string): string | null;
  /** Null once removed. */
  find(memberId: string): Account | null;
}

export interface Passkeys {
  add(memberId: string, passkey: NewPasskey): void;
  list(memberId: string): Passkey[];
  find(id: string): PasskeyCredential | null;
  recordUse(id: string, counter: number): void;
  /** Why {@link remove} would refuse it, in a sentence; null where it would not. */
  removalObstacle(memberId: string, id: string): string | null;
  remove(memberId: string, id: string): void;
}

export interface Audit {
  append(entry: AuditEntry): void;
  /** Newest first; `desk` null: of all. */
  list(page: {
    readonly desk: string | null;
    readonly key?: string | null;
    readonly before?: number | null;
    readonly limit: number;
  }): AuditRecord[];
  /** Key id → the address of the member who created it, or null for an admin. */
  creatorsOf(desk: string, keyIds: readonly string[]): ReadonlyMap<string, string | null>;
}

/** Of one desk at a time. Each answer is the work of milliseconds, however many signals there are. */
export interface Signals {
  /** With `after`: the signals next to it; else the newest ones. */
  page(request: SignalRequest): SignalPage;
  /** The newest ones, though there be more behind them, that are newer than `after`. */
  latest(request: SignalRequest): SignalPage;
  /** Of the desk's newest signal, or an id below all others where there is none. */
  newestId(deskId: number): string;
  /** Null for an id that is unknown, or another desk's. */
  get(deskId: number, id: string): StoredSignal | null;
  /** By `id` or `client_signal_id`. Two where the one's name is the other's id. */
  find(deskId: number, text: string): StoredSignal[];
  /** Newest first; some may be empty: a caller can give way to others in between. */
  chunks(
    request: Pick<SignalRequest, "deskId" | "filter">,
    rowsMax: number,
  ): Iterator<readonly StoredSignal[]>;
}

/** What was done with a desk's keys, a second or two ago and before. */
export interface Activity {
  /** Those with anything in them, oldest first, from the one that `from` is in. */
  buckets(owner: ActivityOwner, width: ActivityWidth, from: number): Bucket[];
  /** By the key's id; of the hours from the one that `from` is in. */
  ofKeys(deskId: number, keyIds: readonly string[], from: number): ReadonlyMap<string, KeyActivity>;
  /** Ids of keys that have ended and were still sent with, the latest first; of the same hours. */
  knockingKeys(deskId: number, from: number, limit: number): string[];
  /** Newest first; `before`: only those with a lower request id. */
  rejects(owner: ActivityOwner, before: string | null, limit: number): Reject[];
  /** Null where no duplicate is known. */
  repeatsOf(deskId: number, signalId: string): Repeats | null;
}
