/** Keys in SQLite; `desks.ts` has the desks. Each change is one short transaction that a running server sees at once. */
import { requireRoom, WAS_ROTATED } from "./key-limits.ts";
import { ulid } from "ulid";
import type { AuditEntry } from "../../domain/audit.ts";
import { NotFoundError, UserError } from "../../domain/errors.ts";
import { type ApiKey, generateKey, hashKey, keyState } from "../../domain/key.ts";
import { checkLabel } from "../../domain/note.ts";
import {
  ADMIN,
  type Author,
  type KeyPage,
  type MintedKey,
  type NewKey,
  type OfDesk,
  type Registry,
  type Rotation,
} from "../../domain/storage.ts";
import { IS_ACTIVE, SqliteDesks } from "./desks.ts";

const KEY_COLUMNS = `api_keys.id, api_keys.scope, desks.name AS desk, api_keys.label, api_keys.last4, api_keys.created_at,
  api_keys.expires_at, api_keys.last_used_at, api_keys.revoked_at, desks.archived_at AS desk_archived_at`;

const HAS_ENDED = `api_keys.desk_id = $desk
  AND (api_keys.revoked_at IS NOT NULL OR api_keys.expires_at <= $now)`;

type Values = Record<string, string | number | Uint8Array | null>;

/** Sorts after every id. */
const NO_CURSOR = "~";

export class SqliteRegistry extends SqliteDesks implements Registry {
  mintKey(key: NewKey, by: Author = ADMIN): MintedKey {
    if (key.label !== null) checkLabel(key.label);
    return this.change(() => {
      const desk = key.desk === null ? null : this.activeDesk(key.desk);
      requireRoom(this.db, desk, { now: this.now(), isReplacement: false });
      return this.#insertKey(key, by, null);
    });
  }

  mintObstacle(desk: string): string | null {
    try {
      requireRoom(this.db, this.activeDesk(desk), { now: this.now(), isReplacement: false });
      return null;
    } catch (error) {
      if (error instanceof UserError) return error.sentence;
      throw error;
    }
  }

  pageKeys(page: KeyPage): ApiKey[] {
    const { state, before, scope = null, limit } = page;
    const desk = this.getDesk(page.desk).id;
    const [index, condition] =
      state === "active" ? ["api_keys_active", IS_ACTIVE] : ["api_keys_desk", HAS_ENDED];
    return this.#select(
      `INDEXED BY ${index}`,
      `WHERE ${condition} AND api_keys.id < $before AND api_keys.scope = ifnull($scope, api_keys.scope)
       ORDER BY api_keys.id DESC LIMIT $limit`,
      { desk, now: this.now(), before: before ?? NO_CURSOR, scope, limit },
    );
  }

  expiringKeys(name: string | null, before: number): ApiKey[] {
    return this.#select(
      "INDEXED BY api_keys_active",
      `WHERE ${IS_ACTIVE} AND ifnull(api_keys.expires_at, 9223372036854775807) < $before
         AND desks.archived_at IS NULL AND NOT ${WAS_ROTATED}
       ORDER BY api_keys.expires_at`,
      { desk: this.#deskId(name), now: this.now(), before },
    );
  }

  findKey(id: string, { desk = null }: OfDesk = {}): ApiKey | null {
    const [key] = this.#select("", "WHERE api_keys.id = $id", { id: id.toUpperCase() });
    return key !== undefined && (desk === null || key.desk === desk) ? key : null;
  }

  findKeyItself(key: string): ApiKey | null {
    return this.#select("", "WHERE key_hash = $hash", { hash: hashKey(key) })[0] ?? null;
  }

  findSuccessor({ id }: ApiKey): ApiKey | null {
    // A rotation's detail ends with the successor's id.
    const sql = `SELECT substr(detail, -26) AS id FROM audit
      WHERE key_id = ? AND action = 'key.rotated' ORDER BY id DESC LIMIT 1`;
    const successor = this.db.query<{ id: string }, [string]>(sql).get(id);
    return successor === null ? null : this.findKey(successor.id);
  }

  hasNamesake({ id, desk, label }: ApiKey): boolean {
    const sql = `SELECT 1 FROM api_keys INDEXED BY api_keys_active
      WHERE ${IS_ACTIVE} AND api_keys.label = $label AND api_keys.id <> $id LIMIT 1`;
    const owner = this.#deskId(desk);
    return this.db.query(sql).get({ desk: owner, now: this.now(), label, id }) !== null;
  }

  listKeys(desk: string | null): ApiKey[] {
    const where = "WHERE $desk IS NULL OR desks.id = $desk ORDER BY api_keys.id";
    return this.#select("", where, { desk: this.#deskId(desk) });
  }

  revokeKey(id: string, of: OfDesk = {}, by: Author = ADMIN): { record: ApiKey; changed: boolean } {
    return this.change(() => {
      const before = this.#key(id, of);
      if (before.revoked_at !== null) return { record: before, changed: false };
      this.db.query("UPDATE api_keys SET revoked_at = ? WHERE id = ?").run(this.now(), before.id);
      this.#auditKey(before, "key.revoked", by);
      return { record: this.#key(before.id), changed: true };
    });
  }

  relabelKey(
    id: string,
    label: string,
    of: OfDesk = {},
    by: Author = ADMIN,
  ): { record: ApiKey; changed: boolean } {
    checkLabel(label);
    return this.change(() => {
      const before = this.#key(id, of);
      if (before.label === label) return { record: before, changed: false };
      this.db.query("UPDATE api_keys SET label = ? WHERE id = ?").run(label, before.id);
      const from = before.label === null ? "it had none" : `it was "${before.label}"`;
      this.#auditKey(before, "key.relabelled", by, from);
      return { record: this.#key(before.id), changed: true };
    });
  }

  rotateKey(
    id: string,
    options: Rotation & OfDesk,
    by: Author = ADMIN,
  ): { minted: MintedKey; old: ApiKey } {
    return this.change(() => {
      const old = this.#key(id, options);
      const desk = old.desk === null ? null : this.activeDesk(old.desk);
      const state = keyState(old, this.now());
      if (state !== "active") {
        throw new UserError(
          `Key ${old.id} is ${state}, so it cannot be rotated: mint a new one`,
          mintLike(old),
        );
      }
      this.#refuseRotated(old);
      requireRoom(this.db, desk, { now: this.now(), isReplacement: true });
      const expiresAt = Math.min(
        this.now() + options.overlapMs,
        old.expires_at ?? Number.MAX_SAFE_INTEGER,
      );
      const { expiresInMs = lifetimeOf(old) } = options;
      const { scope, label } = old;
      const successor = { scope, desk: old.desk, label, expiresInMs };
      this.db.query("UPDATE api_keys SET expires_at = ? WHERE id = ?").run(expiresAt, old.id);
      const minted = this.#insertKey(successor, by, `successor of ${old.id}`);
      this.#auditKey(old, "key.rotated", by, `its successor is ${minted.record.id}`);
      return { minted, old: this.#key(old.id) };
    });
  }

  /** A second successor would make the overlap ambiguous, and the expiry of a rotated key no longer tells its lifetime. */
  #refuseRotated(key: ApiKey): void {
    const successor = this.findSuccessor(key);
    if (successor === null) return;
    const state = keyState(successor, this.now());
    const rotated = `Key ${key.id} has been rotated already, and its successor`;
    throw state === "active"
      ? new UserError(
          `${rotated} is ${successor.id}: rotate that one`,
          `key rotate ${successor.id}`,
        )
      : new UserError(`${rotated} ${successor.id} is ${state}: mint a new one`, mintLike(key));
  }

  #insertKey(
    {
      scope,
      desk,
      label,
      expiresInMs,
    }: Pick<ApiKey, "scope" | "desk" | "label"> & Pick<NewKey, "expiresInMs">,
    by: Author,
    detail: string | null,
  ): MintedKey {
    const now = this.now();
    const expiresAt = expiresInMs === null ? null : now + expiresInMs;
    const key = generateKey(scope);
    const id = ulid(now);
    this.db
      .query(
        `INSERT INTO api_keys (id, scope, desk_id, label, key_hash, last4, created_at, expires_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(id, scope, this.#deskId(desk), label, hashKey(key), key.slice(-4), now, expiresAt);
    const record = this.#key(id);
    this.#auditKey(record, "key.created", by, detail ?? describeScope(record));
    return { key, record };
  }

  #select(index: string, condition: string, values: Values): ApiKey[] {
    return this.db
      .query<ApiKey, Values>(
        `SELECT ${KEY_COLUMNS} FROM api_keys ${index}
         LEFT JOIN desks ON desks.id = api_keys.desk_id ${condition}`,
      )
      .all(values);
  }

  #key(id: string, of: OfDesk = {}): ApiKey {
    const key = this.findKey(id, of);
    if (key !== null) return key;
    // Do not repeat what was typed: it may be a key, pasted by mistake.
    throw new NotFoundError("There is no key with this id: list the ids", "key list");
  }

  #auditKey(
    key: ApiKey,
    action: AuditEntry["action"],
    by: Author,
    detail: string | null = null,
  ): void {
    const deskId = this.#deskId(key.desk);
    this.audit(by, { deskId, action, keyId: key.id, detail });
  }

  #deskId(name: string | null): number | null {
    return name === null ? null : this.getDesk(name).id;
  }
}

/** In milliseconds; null: never expires. Only for a key that was not rotated: a rotation shortens its expiry. */
function lifetimeOf({ created_at, expires_at }: ApiKey): number | null {
  return expires_at === null ? null : expires_at - created_at;
}

function describeScope({ scope, desk }: ApiKey): string | null {
  if (scope === "send") return null;
  return desk === null ? "it reads the signals of all desks" : "it reads the desk's signals";
}

/** The command that mints another key of this kind. */
function mintLike({ scope, desk }: ApiKey): string {
  return `key mint${scope === "read" ? " --read" : ""}${desk === null ? "" : ` --desk ${desk}`}`;
}
