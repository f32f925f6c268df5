/**
 * Everything that Signalbox asks of its storage. `store/open.ts` chooses the storage, and
 * `test/storage.contract.ts` checks that it keeps what is promised here. A method may answer at once or
 * with a promise. Times are epoch milliseconds, UTC.
 *
 * First what the server, the commands and the console open. Then its parts: signals, the feed, reading, figures;
 * desks and keys, members, passkeys, the audit; sessions and activity. Last the database as a file.
 */
import type {
  ActivityBatch,
  ActivityOwner,
  ActivityWidth,
  Bucket,
  KeyActivity,
  RejectQuery,
  Rejects,
  Repeats,
} from "./activity.ts";
import type { AuditEntry, AuditPage, AuditRecord } from "./audit.ts";
import type { Desk, DeskOverview } from "./desk.ts";
import type { ApiKey, KeyLife, KeyScope } from "./key.ts";
import type {
  Account,
  Invitation,
  MadeLink,
  Member,
  NewPasskey,
  Passkey,
  PasskeyCredential,
  SignInAccount,
  SignInMeans,
} from "./member.ts";
import type { Session } from "./session.ts";
import type { Signal } from "./signal.ts";
import type { SignalList, SignalQuery, StoredSignal } from "./stored-signal.ts";

export type Awaitable<T> = T | Promise<T>;

/** The storage of a running server. */
export interface ServerStorage extends SignalStore, FeedStore {
  hasDesks(): Awaitable<boolean>;
  /** Signals without an outcome. */
  readonly queueDepth: number;
  /** Takes milliseconds, however many signals there are. */
  figures(query: FiguresQuery): Awaitable<StorageFigures>;
  /** Why signals are not stored at present; null while they are. */
  readonly writerProblem: string | null;
  /** Waits for the outcome of every submission first. */
  close(): Promise<void>;
}

/** What {@link ServerStorage} reports while it is open. */
export interface ServerStorageEvents {
  /** Nothing more will be stored: end the process. Called at most once. */
  readonly onFatal: (reason: string) => void;
  /** Some signals were not stored; their clients have been told. */
  readonly onProblem: (problem: StorageProblem) => void;
  /** Signals are stored again after a problem. */
  readonly onRecovered: () => void;
  readonly onTransaction: (transaction: Transaction) => void;
  /** Signals of these desks were stored, and {@link FeedStore} finds them. Called at most once per commit. */
  readonly onStored: (deskIds: ReadonlySet<number>) => void;
  /** Something that the operator should know, in a sentence. */
  readonly onWarning: (sentence: string) => void;
}

/** What commands use, and the console with more. */
export interface Storage {
  readonly registry: Registry;
  readonly members: Members;
  readonly passkeys: Passkeys;
  readonly audit: Audit;
  readonly signals: SignalReader;
  /** Empty in a command if it cannot be read: a server will replace it. */
  readonly activity: Pick<Activity, "keysStillInUse">;
  close(): Awaitable<void>;
}

export interface ConsoleStorage extends Storage {
  readonly activity: Activity;
  readonly sessions: SessionStore;
  /** Signs device cookies. In no backup: a reader of backups could forge such cookies. */
  readonly deviceSecret: Uint8Array;
}

/** What a request to store a signal uses. */
export interface SignalStore {
  /** Returns null for an unknown key and for a read key. Called for each request: answer at once if you can. */
  findOwner(key: string): Awaitable<KeyOwner | null>;
  /**
   * Resolves when the signal, or the original that it repeats, is on disk. Ids strictly increase in
   * commit order. Rejects with `unauthorized` if the key or its desk has ended meanwhile, with `unavailable` if
   * the queue is full, the disk refuses, or the outcome is unknown, and with any other error for a
   * defect with this signal alone.
   */
  append(submission: Submission): Promise<Appended>;
}

/** A validated signal with its attribution. */
export interface Submission {
  readonly keyId: string;
  readonly deskId: number;
  readonly receivedAt: number;
  readonly signal: Signal;
}

/** `differs` names the fields in which a duplicate is not the same as the stored original. */
export type Appended =
  | { readonly deduped: false; readonly id: string }
  | { readonly deduped: true; readonly id: string; readonly differs: readonly (keyof Signal)[] };

/** Signals that were not stored, for the operator's log. */
export interface StorageProblem {
  /** `unavailable`: the disk or a lock is in the way; `failed`: a defect of ours with some signals. */
  readonly kind: "unavailable" | "failed";
  /** Null when the storage cannot tell. */
  readonly obstacle: "disk" | "lock" | null;
  readonly reason: string;
  readonly signals: number;
}

/** A transaction that stored signals. */
export interface Transaction {
  readonly signals: number;
  readonly durationMs: number;
  /** The commit at its end: writing the log, and its fsync. */
  readonly commitMs: number;
}

export interface Identity {
  readonly keyId: string;
  readonly deskId: number;
  readonly deskName: string;
}

/** In whatever state the key is: `keyState` of `domain/key.ts` tells. */
export interface KeyOwner extends Identity, KeyLife {}

/** What a request for stored signals uses. Each method throws `unavailable` if the storage cannot be read. */
export interface FeedStore extends Pick<SignalReader, "list" | "get"> {
  /** Returns null for an unknown key and for one that is not a read key. */
  findReader(key: string): Awaitable<Reader | null>;
  /** Records when a read key was used, at most once a minute. */
  recordRead(keyId: string, at: number): void;
  /** By the desk's name; null if it is unknown. */
  findDeskId(name: string): Awaitable<number | null>;
}

/** Who reads the feed with a key, in whatever state the key is. */
export interface Reader extends KeyLife {
  readonly keyId: string;
  /** Null: all desks. */
  readonly deskId: number | null;
  readonly deskName: string | null;
}

/** Signals as people and programs read them. Each call takes milliseconds, however many signals there are. */
export interface SignalReader {
  /** In commit order or against it, from a cursor on: pages, exports and feeds are made of this. */
  list(query: SignalQuery): Awaitable<SignalList>;
  /** Returns null for an unknown id and for another desk's; `deskId` null: of any desk. */
  get(deskId: number | null, id: string): Awaitable<StoredSignal | null>;
  /**
   * By `id` or `client_signal_id`; `deskId` null: of all desks. Several, if one signal's
   * `client_signal_id` is another's `id`, or desks use the same one.
   */
  find(deskId: number | null, text: string): Awaitable<StoredSignal[]>;
  /** The different symbols of a desk's latest signals (two thousand or so), the latest first. */
  symbols(deskId: number, limit: number): Awaitable<string[]>;
  /** How far the signal with this id is into the query's range in the order of storage: 0 to 1. */
  progress(query: SignalQuery, id: string): Awaitable<number>;
  /** How many signals, of all desks, have an id of this time or later. */
  countSince(time: number): Awaitable<number>;
}

export interface FiguresQuery {
  readonly now: number;
  readonly desksMax: number;
  readonly keysMax: number;
}

/** The state of the storage, for metrics. */
export interface StorageFigures {
  readonly databaseBytes: number;
  /** The log is part of the database until a checkpoint has copied it. */
  readonly logBytes: number;
  /** Desks that are not archived, up to the limit, the latest signal first. */
  readonly desks: readonly {
    readonly id: number;
    readonly name: string;
    readonly latestSignalAt: number | null;
  }[];
  readonly desksTotal: number;
  /** Active keys that send signals, up to the limit, the last used first. */
  readonly keys: readonly {
    readonly id: string;
    readonly desk: string;
    /** Up to a minute old. */
    readonly lastUsedAt: number | null;
  }[];
  readonly keysTotal: number;
  /** Active keys, of readers too, without a successor that expire within `EXPIRING_SOON_MS`. */
  readonly keysExpiring: number;
}

/** Who makes a change and from where, for the audit. */
export interface Author {
  /** Null: an administrator on the command line. */
  readonly memberId: string | null;
  /**
   * The member's `signed_out_at` when their session began. If it has changed, they were signed out, and
   * the change is refused with `SignedOutError`.
   */
  readonly signedOutAt?: number;
  /** The client's IP address; null: the command line. */
  readonly client: string | null;
}

export interface MemberAuthor extends Author {
  readonly memberId: string;
}

export const ADMIN: Author = { memberId: null, client: null };

/** Desks and their keys. Every error is a `UserError`; every change is in the audit. */
export interface Registry {
  /** By an administrator. */
  createDesk(
    name: string,
    options: { ifMissing: boolean },
  ): Awaitable<{ desk: Desk; created: boolean }>;
  /** By name, archived desks included. */
  listDesks(): Awaitable<Desk[]>;
  /** {@link listDesks} with more. Counts signals up to `signalsMax`, by default `SIGNALS_COUNTED_MAX`. */
  listOverviews(signalsMax?: number): Awaitable<DeskOverview[]>;
  getDesk(name: string): Awaitable<Desk>;
  /** Whether the desk's members must sign in with passkeys, from their next request on. By an administrator. */
  requirePasskeys(desk: string, isRequired: boolean): Awaitable<{ changed: boolean }>;
  /** Everything of the desk stays. By an administrator. */
  renameDesk(name: string, newName: string): Awaitable<{ changed: boolean }>;
  /**
   * While a desk is archived, its keys, members and links do not work, and it gets no new ones. When this
   * has returned, no signal of the desk commits any more, and its members' sessions have ended. Nothing is
   * deleted: with `isArchived` false everything but the sessions works again. By an administrator.
   */
  archiveDesk(desk: string, isArchived: boolean): Awaitable<{ changed: boolean }>;
  /** Keys beyond a lower limit stay active, and no further one is minted. By an administrator. */
  limitKeys(desk: string, keysMax: number): Awaitable<void>;
  /** Why {@link mintKey} would refuse, in a sentence; null if it would not. */
  mintObstacle(desk: string): Awaitable<string | null>;
  /** Refused when the desk has as many active keys as it may have; of read keys for all desks, there may be 100. */
  mintKey(key: NewKey, by: Author): Awaitable<MintedKey>;
  /** All keys, or those of one desk, oldest first. */
  listKeys(desk: string | null): Awaitable<ApiKey[]>;
  /** A desk's keys, newest first. */
  pageKeys(page: KeyPage): Awaitable<ApiKey[]>;
  /**
   * Active keys of a desk that expire before this time and have no successor, the first to expire first;
   * null: the read keys for all desks.
   */
  expiringKeys(desk: string | null, before: number): Awaitable<ApiKey[]>;
  /** Returns null for an unknown id. */
  findKey(id: string, of?: OfDesk): Awaitable<ApiKey | null>;
  /** By the key itself. Returns null for an unknown one. */
  findKeyItself(key: string): Awaitable<ApiKey | null>;
  /** Returns null for a key that was not rotated. */
  findSuccessor(key: ApiKey): Awaitable<ApiKey | null>;
  /** Whether another active key of the desk has the same label. */
  hasNamesake(key: ApiKey): Awaitable<boolean>;
  /** Idempotent. When it has returned, no signal of this key commits any more, and a read key reads nothing more. */
  revokeKey(id: string, of: OfDesk, by: Author): Awaitable<{ record: ApiKey; changed: boolean }>;
  /** In any state. Idempotent. */
  relabelKey(
    id: string,
    label: string,
    of: OfDesk,
    by: Author,
  ): Awaitable<{ record: ApiKey; changed: boolean }>;
  /**
   * Mints a successor with the same desk and label, and the same lifetime unless told otherwise. The old
   * key expires after `overlapMs`, or at its own expiry if that is sooner. A key is rotated once; after
   * that, rotate its successor. A desk at its limit can still rotate each key: keys in their overlap do
   * not count, and there may be as many of them as of the others.
   */
  rotateKey(
    id: string,
    options: Rotation & OfDesk,
    by: Author,
  ): Awaitable<{ minted: MintedKey; old: ApiKey }>;
}

/** `desk` null: for all desks. */
export type NewKey = (
  | { readonly scope: "send"; readonly desk: string }
  | { readonly scope: "read"; readonly desk: string | null }
) & {
  readonly label: string | null;
  readonly expiresInMs: number | null;
};

/** A new key: the only time that its plaintext is known. */
export interface MintedKey {
  readonly key: string;
  readonly record: ApiKey;
}

export interface Rotation {
  readonly overlapMs: number;
  /** The lifetime of the successor; null: it never expires. If absent, that of the old key, from now. */
  readonly expiresInMs?: number | null | undefined;
}

/** If a desk is named, another desk's key is treated as unknown. */
export interface OfDesk {
  readonly desk?: string | null;
}

export interface KeyPage {
  readonly desk: string;
  readonly state: "active" | "ended";
  /** Only keys older than the one with this id. */
  readonly before?: string | null;
  /** Null: of both scopes. */
  readonly scope?: KeyScope | null;
  readonly limit: number;
}

/** The people who use the console. Every change is in the audit. */
export interface Members {
  /** Creates the member, or a new link for one who has not joined. Refused when the desk is full. */
  invite(desk: string, email: string, by: Author): Awaitable<MadeLink>;
  /**
   * Ends the member's sessions and makes a link for a new password or passkey. The present ones work
   * until the link is used; with `lock` they stop working at once. By an administrator.
   */
  reset(desk: string, email: string, options?: { lock?: boolean }): Awaitable<MadeLink>;
  /**
   * Ends the member's sessions and links; the address may be invited again, to any desk. Members cannot
   * remove themselves, so that a desk keeps one.
   */
  remove(desk: string, email: string, by: Author): Awaitable<Member>;
  /** Members who were not removed, by address. */
  list(desk: string): Awaitable<Member[]>;
  /** Returns null for a link that is unknown, expired or used, or whose member {@link find} does not find. */
  findInvitation(token: string): Awaitable<Invitation | null>;
  /**
   * Uses the link: these means replace the password and every passkey, and all sessions end. Returns null if
   * the link does not work: of two at the same moment, one succeeds.
   */
  spendLink(token: string, means: SignInMeans, client: string | null): Awaitable<Account | null>;
  /** Ends all sessions: start a new one with the account that it returns. */
  setPassword(by: MemberAuthor, passwordHash: string): Awaitable<Account>;
  /** Like {@link setPassword}. */
  signOutEverywhere(by: MemberAuthor): Awaitable<Account>;
  /** Takes any text. Returns null for an unknown address. Also finds members of an archived desk. */
  findForSignIn(email: string): Awaitable<SignInAccount | null>;
  /** The hash of the member's password, even if it is locked; null without one. */
  passwordHash(memberId: string): Awaitable<string | null>;
  /** Returns null for a removed member, and while the desk is archived. */
  find(memberId: string): Awaitable<Account | null>;
}

/** WebAuthn credentials. A removed one is never found again. */
export interface Passkeys {
  /**
   * Throws a `UserError` if the credential is registered already, with any member. `onlyIfFirst`: also if
   * the member has a passkey, so that two sessions with the password cannot both add the first one.
   */
  add(
    by: MemberAuthor,
    passkey: NewPasskey,
    options?: { readonly onlyIfFirst?: boolean },
  ): Awaitable<void>;
  /** The member's, oldest first. */
  list(memberId: string): Awaitable<Passkey[]>;
  /** Returns null for a removed passkey and for a removed member's. */
  find(id: string): Awaitable<PasskeyCredential | null>;
  /**
   * Records a use whose signature was checked. `regressed`: the counter decreased, so the passkey
   * may have been copied, and nothing was recorded. Two uses at once cannot both pass with one counter.
   */
  recordUse(id: string, counter: number): Awaitable<"recorded" | "regressed" | "unknown">;
  /** Why {@link remove} would refuse, in a sentence; null if it would not. */
  removalObstacle(memberId: string, id: string): Awaitable<string | null>;
  remove(by: MemberAuthor, id: string): Awaitable<void>;
}

export interface Audit {
  /** For events that change nothing else, such as a sign-in: a change writes its own entry. An
   * administrator's names the user of the operating system who ran this program. */
  append(entry: AuditEntry): Awaitable<void>;
  /** Newest first. */
  list(page: AuditPage): Awaitable<AuditRecord[]>;
  /** Key id → the address of the member who created it, or null for an administrator. */
  creatorsOf(
    desk: string,
    keyIds: readonly string[],
  ): Awaitable<ReadonlyMap<string, string | null>>;
}

/** The console's sessions. In no backup, and a restore ends them all. A removed one never comes back. */
export interface SessionStore {
  /** Removes the member's least recently used sessions, so that they have at most `perMemberMax` with this one. */
  add(session: Session, perMemberMax: number): Awaitable<void>;
  find(id: string): Awaitable<Session | null>;
  /** The member's, the last used first. */
  list(memberId: string): Awaitable<Session[]>;
  /** Does nothing for a removed session, or if the disk is full: pages can be read all the same. */
  recordUse(id: string, at: number): Awaitable<void>;
  /** Whether the session was there. */
  remove(id: string): Awaitable<boolean>;
  /** Removes one that is refused anyway. Does nothing if the disk is full. */
  discard(id: string): Awaitable<void>;
  /** Removes sessions of all members that were last used longer ago than this, or as far in the future. */
  removeUnused(now: number, idleMsMax: number): Awaitable<void>;
}

/** What was done with a desk's keys, except in the last second or two. */
export interface Activity {
  /** Throws if the disk refuses it: then nothing of the batch is recorded. */
  write(batch: ActivityBatch): Awaitable<void>;
  /** Those with anything in them, oldest first, starting with the one that contains `from`. */
  buckets(owner: ActivityOwner, width: ActivityWidth, from: number): Awaitable<Bucket[]>;
  /** {@link buckets} of several keys, by the key's id. */
  bucketsOfKeys(
    deskId: number,
    keyIds: readonly string[],
    width: ActivityWidth,
    from: number,
  ): Awaitable<ReadonlyMap<string, readonly Bucket[]>>;
  /** By the key's id; in the hours starting with the one that contains `from`. */
  ofKeys(
    deskId: number,
    keyIds: readonly string[],
    from: number,
  ): Awaitable<ReadonlyMap<string, KeyActivity>>;
  /** Ids of keys that got 401 because they have ended, latest request first; in the same hours. */
  keysStillInUse(deskId: number, from: number, limit: number): Awaitable<string[]>;
  /** By reason, the one with the latest request first. */
  rejects(query: RejectQuery): Awaitable<Rejects[]>;
  /** Returns null if no duplicate is known. */
  repeatsOf(deskId: number, signalId: string): Awaitable<Repeats | null>;
}

/**
 * What `backup`, `restore` and `verify` need: a capability of storages whose database is a file in the
 * data folder. Each method throws `UserError`; `verify` reports damage in its result.
 */
export interface DatabaseFiles {
  pathIn(dataDir: string): string;
  /** The size of the log, which is part of the database until a checkpoint has copied it; 0 without one. */
  logBytes(dataDir: string): number;
  verify(file: string): Awaitable<Verification>;
  /** In a sentence; null if all checks are ok. */
  problemOf(verification: Verification): string | null;
  /**
   * Copies a database, which may be in use, and verifies the copy before it gets its name. Throws
   * `UserError` if the `earlier` backups, newest first, are of another database.
   */
  copy(from: string, to: string, earlier?: readonly string[]): Awaitable<Verification>;
  /** {@link copy} in a process of its own, which can be watched and stopped. */
  copyInProcess(from: string, to: string, options: CopyOptions): Promise<Verification>;
  /** Whether the file is a copy that may be replaced by another. */
  isCopy(file: string): boolean;
  /**
   * Puts a copy of a backup in the place of the folder's database, which is kept under a name with
   * this stamp, and only replaced if `isForced`. The server must be stopped.
   */
  restore(
    file: string,
    dataDir: string,
    options: CopyOptions & { readonly isForced: boolean; readonly stamp: string },
  ): Promise<Restored>;
}

/** What was found in a database file. */
export interface Verification {
  readonly ok: boolean;
  readonly file: string;
  /** Schema version of the database. */
  readonly version: number;
  readonly signals: number;
  /** The newest signal's id, or null without signals. */
  readonly newest_id: string | null;
  /** By name. If `schema` fails, nothing else was read. */
  readonly checks: Readonly<Record<string, Check>> & { readonly schema: Check };
}

export interface Check {
  /** Null: not checked, because of what another check found. */
  readonly ok: boolean | null;
  readonly detail: string;
}

export interface CopyOptions {
  /** The command line that starts this program, without the command. */
  readonly program: readonly string[];
  /** Free space that signals need: a copy on the disk of the original stops before it takes that. */
  readonly freeBytesMin: number;
  /** As for {@link DatabaseFiles.copy}. */
  readonly earlier?: readonly string[] | undefined;
  /** Stops the copy. */
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined;
}

/** Bytes written so far, and about how many it will be; the verification follows. */
export interface CopyProgress {
  readonly copiedBytes: number;
  readonly totalBytes: number;
}

export interface Restored {
  /** The path of the previous database, or null. */
  readonly kept: string | null;
  /** What was carried over from the previous database, or null without one. */
  readonly keys: KeysTaken | null;
  /** Signals that only the previous database has; null without one, or if they cannot be counted. */
  readonly missing_signals: number | null;
  /** Names of the desks that are archived now. */
  readonly archived_desks: readonly string[];
}

/** `failure`: why nothing was carried over. */
export type KeysTaken =
  | {
      readonly minted: number;
      readonly revoked: number;
      readonly only_in_backup: number;
      readonly failure: null;
    }
  | { readonly failure: string };
