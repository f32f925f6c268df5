/** Desks and keys in SQLite. Each change is one short transaction that a running server sees at once. */
import type { Database } from "bun:sqlite";
import { closest } from "fastest-levenshtein";
import { ulid } from "ulid";
import { checkDeskName, type Desk } from "../../domain/desk.ts";
import { UserError } from "../../domain/errors.ts";
import { type ApiKey, checkLabel, generateKey, hashKey, keyState } from "../../domain/key.ts";
import type { MintedKey, NewKey, Registry } from "../../domain/store.ts";

const KEY_COLUMNS = `api_keys.id, desks.name AS desk, api_keys.label, api_keys.last4, api_keys.created_at,
  api_keys.expires_at, api_keys.last_used_at, api_keys.revoked_at`;

export class SqliteRegistry implements Registry {
  readonly #db: Database;
  readonly #now: () => number;

  constructor(db: Database, now: () => number = Date.now) {
    this.#db = db;
    this.#now = now;
  }

  createDesk(name: string, options: { ifMissing: boolean }): { desk: Desk; created: boolean } {
    checkDeskName(name);
    return this.#transaction(() => {
      const existing = this.#findDesk(name);
      if (existing !== null && options.ifMissing) return { desk: existing, created: false };
      if (existing !== null) {
        throw new UserError(
          `There is a desk "${name}" already: mint a key for it with: signalbox key mint --desk ${name}`,
        );
      }
      this.#db.query("INSERT INTO desks (name, created_at) VALUES (?, ?)").run(name, this.#now());
      return { desk: this.#desk(name), created: true };
    });
  }

  listDesks(): Desk[] {
    return this.#db
      .query<Desk, []>("SELECT id, name, created_at, differing_duplicates FROM desks ORDER BY name")
      .all();
  }

  mintKey(key: NewKey): MintedKey {
    if (key.label !== null) checkLabel(key.label);
    return this.#transaction(() => this.#insertKey(key));
  }

  listKeys(desk: string | null): ApiKey[] {
    const where = desk === null ? "" : "WHERE desks.id = ?";
    const parameters = desk === null ? [] : [this.#desk(desk).id];
    return this.#db
      .query<ApiKey, number[]>(
        `SELECT ${KEY_COLUMNS} FROM api_keys JOIN desks ON desks.id = api_keys.desk_id ${where} ORDER BY api_keys.id`,
      )
      .all(...parameters);
  }

  revokeKey(id: string): { record: ApiKey; changed: boolean } {
    return this.#transaction(() => {
      const before = this.#key(id);
      if (before.revoked_at !== null) return { record: before, changed: false };
      this.#db.query("UPDATE api_keys SET revoked_at = ? WHERE id = ?").run(this.#now(), before.id);
      return { record: this.#key(before.id), changed: true };
    });
  }

  rotateKey(
    id: string,
    { overlapMs, expiresInMs }: { overlapMs: number; expiresInMs: number | null },
  ): { minted: MintedKey; old: ApiKey } {
    return this.#transaction(() => {
      const old = this.#key(id);
      const state = keyState(old, this.#now());
      if (state !== "active") {
        throw new UserError(
          `Key ${old.id} is ${state}, so there is nothing to overlap with: mint a new one with: signalbox key mint --desk ${old.desk}`,
        );
      }
      const expiresAt = Math.min(
        this.#now() + overlapMs,
        old.expires_at ?? Number.MAX_SAFE_INTEGER,
      );
      this.#db.query("UPDATE api_keys SET expires_at = ? WHERE id = ?").run(expiresAt, old.id);
      const minted = this.#insertKey({ desk: old.desk, label: old.label, expiresInMs });
      return { minted, old: this.#key(old.id) };
    });
  }

  #insertKey({ desk, label, expiresInMs }: NewKey): MintedKey {
    const now = this.#now();
    const expiresAt = expiresInMs === null ? null : now + expiresInMs;
    const key = generateKey();
    const id = ulid(now);
    this.#db
      .query(
        `INSERT INTO api_keys (id, desk_id, label, key_hash, last4, created_at, expires_at)
         VALUES (?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(id, this.#desk(desk).id, label, hashKey(key), key.slice(-4), now, expiresAt);
    return { key, record: this.#key(id) };
  }

  #findDesk(name: string): Desk | null {
    return this.#db
      .query<Desk, [string]>(
        "SELECT id, name, created_at, differing_duplicates FROM desks WHERE name = ?",
      )
      .get(name);
  }

  #desk(name: string): Desk {
    const desk = this.#findDesk(name);
    if (desk !== null) return desk;
    const names = this.listDesks().map((other) => other.name);
    if (names.length === 0) {
      throw new UserError(
        `There is no desk "${name}", and no other: create it with: signalbox desk create ${name}`,
      );
    }
    throw new UserError(
      `There is no desk "${name}"; the nearest name is "${closest(name, names)}": see them with: signalbox desk list`,
    );
  }

  #key(id: string): ApiKey {
    const key = this.#db
      .query<ApiKey, [string]>(
        `SELECT ${KEY_COLUMNS} FROM api_keys JOIN desks ON desks.id = api_keys.desk_id WHERE api_keys.id = ?`,
      )
      .get(id.toUpperCase());
    if (key !== null) return key;
    // What was typed is not repeated: it may be a key's plaintext, pasted by mistake.
    throw new UserError("There is no key with this id: see the ids with: signalbox key list");
  }

  #transaction<T>(work: () => T): T {
    this.#db.run("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#db.run("COMMIT");
      return result;
    } catch (error) {
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
      throw error;
    }
  }
}
