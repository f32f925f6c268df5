/**
 * Everything that Signalbox asks of its storage, a part per file. `store/open.ts` chooses the storage, and
 * `test/store/storage.contract.ts` checks that it keeps what is promised here. A method may answer at once or
 * with a promise. Times are epoch milliseconds, UTC.
 *
 * Here is what the server, the commands and the console open.
 */
import type { Activity } from "./activity.ts";
import type { Outage, SignalStore, StorageProblem, Transaction } from "./append.ts";
import type { Audit } from "./audit.ts";
import type { Awaitable } from "./awaitable.ts";
import type { FeedStore } from "./feed.ts";
import type { FiguresQuery, StorageFigures } from "./figures.ts";
import type { Members, Passkeys } from "./members.ts";
import type { Notices } from "./notices.ts";
import type { Registry } from "./registry.ts";
import type { Attempts } from "./shared/attempts.ts";
import type { Notes, SharedNotes } from "./shared/notes.ts";
import type { SessionStore } from "./sessions.ts";
import type { SignalReader } from "./signals.ts";

/** What waits to be stored. Its values are those of the moment. */
export interface QueueState {
  /** Signals without an outcome. */
  readonly depth: number;
  /** The share of the queue that is taken, by number or by size; near 1, signals are refused. */
  readonly usage: number;
  /** Null while signals are stored. It ends by itself, without another signal, too. */
  readonly outage: Outage | null;
}

/** The storage of a running server. */
export interface ServerStorage extends SignalStore, FeedStore {
  hasDesks(): Awaitable<boolean>;
  readonly queue: QueueState;
  /** Takes milliseconds, however many signals there are. */
  figures(query: FiguresQuery): Awaitable<StorageFigures>;
  /** Null for a folder, which has one server. */
  readonly notes: SharedNotes | null;
  /** Waits for the outcome of every submission first. */
  close(): Promise<void>;
}

/** What {@link ServerStorage} reports while it is open. */
export interface ServerStorageEvents {
  /** Nothing more will be stored: end the process, and say what to do next. Called at most once. */
  readonly onFatal: (reason: string, nextStep: string) => void;
  /** Some signals were not stored; their clients have been told. */
  readonly onProblem: (problem: StorageProblem) => void;
  /** A stored signal is damaged, and was not handed out. Called each time that somebody asks for it. */
  readonly onDamaged: (id: string) => void;
  /** Signals are stored again after a problem. */
  readonly onRecovered: () => void;
  readonly onTransaction: (transaction: Transaction) => void;
  /** Signals of these desks were stored, and {@link FeedStore} finds them. Called at most once per commit. */
  readonly onStored: (deskIds: ReadonlySet<number>) => void;
  /** Something that the operator should know, in a sentence. */
  readonly onWarning: (sentence: string) => void;
}

/** Where a commit is when it returns, and how it gets there. */
export interface Replication {
  /** An address. */
  readonly host: string;
  /** By TLS. */
  readonly isEncrypted: boolean;
  /** It waits for a standby, too. */
  readonly isSynchronous: boolean;
}

/** What commands use, and the console with more. */
export interface Storage {
  /** Null for a database in a folder of this machine. */
  readonly replication: () => Awaitable<Replication | null>;
  readonly registry: Registry;
  readonly members: Members;
  readonly passkeys: Passkeys;
  readonly audit: Audit;
  readonly notices: Notices;
  readonly signals: SignalReader;
  /** Empty in a command if it cannot be read: a server will replace it. */
  readonly activity: Pick<Activity, "keysStillInUse" | "sentRejects" | "forgetSent">;
}

export interface ConsoleStorage extends Storage {
  readonly activity: Activity;
  readonly sessions: SessionStore;
  readonly notes: Notes;
  readonly attempts: Attempts;
  /** Signs device cookies and passkeys' challenges. In no backup of a folder: a reader of backups could forge such cookies. */
  readonly deviceSecret: Uint8Array;
  /** Why a change was not saved, such as "the disk is full"; null if trying again later does not help. */
  readonly whyNotSaved: (error: unknown) => string | null;
  close(): Promise<void>;
}
