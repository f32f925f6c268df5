/** The request path's storage: keys are looked up here, signals go to the writer's thread. */
import type { Database } from "bun:sqlite";
import { AppError } from "../../domain/errors.ts";
import { hashKey, keyState } from "../../domain/key.ts";
import type { Appended, KeyOwner, SignalStore, Submission } from "../../domain/store.ts";
import { describeFailure, isDamage, isTransient } from "./failures.ts";
import type { OnTightened } from "./folder.ts";
import { openDatabase } from "./open.ts";
import { Checkpointer } from "./checkpointer.ts";
import { RepeatMemory } from "./repeats.ts";
import type { Where } from "./thread.ts";
import { Writer, type WriterEvents } from "./writer.ts";

export interface StoreEvents extends Omit<WriterEvents, "onWritten"> {
  readonly onTightened?: OnTightened;
}

export class SqliteStore implements SignalStore {
  readonly #db: Database;
  readonly #writer: Writer;
  readonly #checkpointer: Checkpointer | null;
  readonly #repeats: RepeatMemory;
  /** By the key as sent, and those that there are by its id. */
  readonly #ownersOfThisTurn = new Map<string, KeyOwner | null>();
  readonly #ownersById = new Map<string, KeyOwner>();
  readonly #deskNames = new Map<number, string>();
  readonly #findKey;

  private constructor(
    db: Database,
    writer: Writer,
    checkpointer: Checkpointer | null,
    repeats: RepeatMemory,
  ) {
    this.#db = db;
    this.#writer = writer;
    this.#checkpointer = checkpointer;
    this.#repeats = repeats;
    this.#findKey = db.query<Omit<KeyOwner, "deskName">, [Uint8Array]>(
      "SELECT id AS keyId, desk_id AS deskId, expires_at, revoked_at FROM api_keys WHERE key_hash = ?",
    );
  }

  /** The folder's lock must be held (`lock.ts`). Throws `UserError` where it cannot be opened. */
  static async open(where: Where, events: StoreEvents): Promise<SqliteStore> {
    await using opened = new AsyncDisposableStack();
    // First on this thread: creating or upgrading fails here with its own words.
    const { dataDir, externalCheckpoints } = where;
    const { onTightened } = events;
    const db = openDatabase(dataDir, "reader", { externalCheckpoints, onTightened });
    opened.defer(() => db.close());
    const checkpointer = externalCheckpoints
      ? null
      : await Checkpointer.start(where, {
          onNearlyDone: () => writer.checkpoint(),
          onFatal: (reason) => writer.fail(reason),
        });
    opened.defer(() => checkpointer?.close());
    const repeats = new RepeatMemory();
    const onWritten = (pages: number): void => checkpointer?.written(pages);
    const onFatal = (reason: string): void => {
      // From now on nothing is answered with success, not even what is stored for certain.
      repeats.close();
      events.onFatal(reason);
    };
    const writer = await Writer.start(where, { ...events, onWritten, onFatal });
    opened.move();
    return new SqliteStore(db, writer, checkpointer, repeats);
  }

  /**
   * Looks a key up once a turn of the event loop. A longer memory would have to be told of every
   * revoke; a look-up a request costs 9 µs under load, because each commit of the writer's empties
   * this connection's page cache. Nothing is stored on the strength of this alone: the writer checks
   * the key again inside its transaction. A repeat may be answered, within the turn.
   */
  findOwner(key: string): KeyOwner | null {
    let owner = this.#ownersOfThisTurn.get(key);
    if (owner === undefined) {
      owner = this.#lookUp(hashKey(key));
      if (this.#ownersOfThisTurn.size === 0) setImmediate(() => this.#forgetOwners());
      this.#ownersOfThisTurn.set(key, owner);
      if (owner !== null) this.#ownersById.set(owner.keyId, owner);
    }
    return owner;
  }

  #forgetOwners(): void {
    this.#ownersOfThisTurn.clear();
    this.#ownersById.clear();
  }

  #lookUp(keyHash: Uint8Array): KeyOwner | null {
    const row = this.#read(() => this.#findKey.get(keyHash));
    return row === null ? null : { ...row, deskName: this.#deskName(row.deskId) };
  }

  /** Neither of these is the client's affair, and a server that cannot read keys is of no use to anyone. */
  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (isDamage(error)) this.#writer.fail(describeFailure(error));
      if (isDamage(error) || isTransient(error)) {
        throw new AppError("unavailable", { retryAfterS: 1 });
      }
      throw error;
    }
  }

  append(submission: Submission): Promise<Appended> {
    const known = this.#repeats.find(submission);
    if (known !== null && this.#isKeyActive(submission)) return Promise.resolve(known);
    const appended = this.#writer.append(submission);
    if (submission.signal.client_signal_id === null) return appended;
    return appended.then((answer) => {
      this.#repeats.note(submission, answer);
      return answer;
    });
  }

  /** False also where it was looked at in an earlier turn, as where a body took its time: the writer looks again. */
  #isKeyActive({ keyId, receivedAt }: Submission): boolean {
    const owner = this.#ownersById.get(keyId);
    return owner !== undefined && keyState(owner, receivedAt) === "active";
  }

  hasDesks(): boolean {
    return this.#db.query("SELECT 1 FROM desks LIMIT 1").get() !== null;
  }

  get writerProblem(): string | null {
    return this.#writer.problem;
  }

  async close(): Promise<void> {
    // The writer last: its checkpoint then has nobody to wait for.
    this.#db.close();
    await this.#checkpointer?.close();
    await this.#writer.close();
  }

  /** Names never change, so they are looked up once. */
  #deskName(id: number): string {
    let name = this.#deskNames.get(id);
    if (name === undefined) {
      const row = this.#db.query<{ name: string }, [number]>("SELECT name FROM desks WHERE id = ?");
      name = this.#read(() => row.get(id))?.name ?? String(id);
      this.#deskNames.set(id, name);
    }
    return name;
  }
}
