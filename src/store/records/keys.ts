/** Keys. A running server sees each change at once. */
import { ulid } from "ulid";
import { type AuditAction, SUCCESSOR_OF } from "../../domain/audit/audit.ts";
import { EVERY_DESK } from "../../domain/desk/desk.ts";
import { checkLabel } from "../../domain/desk/note.ts";
import { type ApiKey, generateKey, hashKey, IN_USE_MS, keyState } from "../../domain/key/key.ts";
import { checkLimits, describeLimits } from "../../domain/key/limits.ts";
import { ADMIN, type Author } from "../../domain/storage/author.ts";
import type { Keys, KeysOf, MintedKey, NewKey } from "../../domain/storage/registry.ts";
import { UserError } from "../../lib/errors.ts";
import { addEntry } from "./audit.ts";
import { activeDesk, deskIdOf, getDesk } from "./desk-rows.ts";
import { greaterOf, indexedBy, itemsOf, lesserOf } from "./dialect.ts";
import {
  EXPIRY,
  findKey,
  getKey,
  IS_ACTIVE,
  IS_ACTIVE_ANYWHERE,
  requireRoom,
  selectKeys,
  successorId,
} from "./key-rows.ts";
import type { Reader, Sql, Tx, Value } from "./sql.ts";

/** Sorts after every id. */
const NO_CURSOR = "~";

const HAS_ENDED = `api_keys.desk_id = $2
  AND (api_keys.revoked_at IS NOT NULL OR api_keys.expires_at <= $1)`;

const BY_EXPIRY = indexedBy("api_keys_active");

export function keys(sql: Sql) {
  return {
    async mintKey(key, by = ADMIN) {
      if (key.label !== null) checkLabel(key.label);
      const limits = checkLimits(key.limits ?? {}, key.scope);
      return sql.transaction(async (tx) => {
        const desk = key.desk === null ? null : await activeDesk(tx, key.desk);
        await requireRoom(tx, desk, { isReplacement: false });
        return insertKey(tx, { ...key, limits }, by, null);
      });
    },

    async mintObstacle(desk) {
      try {
        await requireRoom(sql, await activeDesk(sql, desk), { isReplacement: false });
        return null;
      } catch (error) {
        if (error instanceof UserError) return error.sentence;
        throw error;
      }
    },

    async pageKeys({ desk, state, before, scope = null, limit }) {
      const { id } = await getDesk(sql, desk);
      const isActive = state === "active";
      return selectKeys(
        sql,
        isActive ? BY_EXPIRY : indexedBy("api_keys_desk"),
        `WHERE ${isActive ? IS_ACTIVE : HAS_ENDED} AND api_keys.id < $3
           AND api_keys.scope = coalesce($4, api_keys.scope)
         ORDER BY api_keys.id DESC LIMIT $5`,
        id,
        before ?? NO_CURSOR,
        scope,
        limit,
      );
    },

    async expiringKeys(of, before) {
      const [isActive, values] = await activeOf(sql, of);
      return selectKeys(
        sql,
        BY_EXPIRY,
        `WHERE ${isActive} AND ${EXPIRY} < $${values.length + 2}
           AND desks.archived_at IS NULL AND ${successorId("$1")} IS NULL
         ORDER BY api_keys.expires_at`,
        ...values,
        before,
      );
    },

    async rotatedKeysInUse(of) {
      const [isActive, values] = await activeOf(sql, of);
      const recently = lesserOf(`$1 - ${IN_USE_MS}`, "coalesce(next.last_used_at, 0)");
      const since = greaterOf("next.created_at", recently);
      return selectKeys(
        sql,
        BY_EXPIRY,
        `JOIN api_keys AS next ON next.id = ${successorId("$1")}
         WHERE ${isActive} AND desks.archived_at IS NULL AND api_keys.last_used_at > ${since}
         ORDER BY api_keys.expires_at`,
        ...values,
      );
    },

    async findKeys(ids) {
      const where = `WHERE api_keys.id IN (SELECT value FROM ${itemsOf("$2")} AS wanted)`;
      const found = await selectKeys(sql, "", where, JSON.stringify(ids));
      const byId = new Map(found.map((key) => [key.id, key]));
      return [...new Set(ids)].flatMap((id) => byId.get(id) ?? []);
    },

    findKey: (id, of = {}) => findKey(sql, id, of),

    async findKeyItself(key) {
      const [found] = await selectKeys(sql, "", "WHERE key_hash = $2", hashKey(key));
      return found ?? null;
    },

    async hasNamesake({ id, desk, label }) {
      const namesake = await sql.get(
        `SELECT 1 FROM api_keys ${BY_EXPIRY}
         WHERE ${IS_ACTIVE} AND api_keys.label = $3 AND api_keys.id <> $4 LIMIT 1`,
        sql.now,
        await deskIdOf(sql, desk),
        label,
        id,
      );
      return namesake !== null;
    },

    async listKeys(desk) {
      const where = "WHERE CAST($2 AS INTEGER) IS NULL OR desks.id = $2 ORDER BY api_keys.id";
      return selectKeys(sql, "", where, await deskIdOf(sql, desk));
    },

    revokeKey(id, of = {}, by = ADMIN) {
      return sql.transaction(async (tx) => {
        const before = await getKey(tx, id, of);
        if (before.revoked_at !== null) return { record: before, changed: false };
        await tx.run("UPDATE api_keys SET revoked_at = $1 WHERE id = $2", tx.now, before.id);
        await addKeyEntry(tx, by, before, "key.revoked", null);
        return { record: await getKey(tx, before.id), changed: true };
      });
    },

    async relabelKey(id, label, of = {}, by = ADMIN) {
      checkLabel(label);
      return sql.transaction(async (tx) => {
        const before = await getKey(tx, id, of);
        if (before.label === label) return { record: before, changed: false };
        await tx.run("UPDATE api_keys SET label = $1 WHERE id = $2", label, before.id);
        const from = before.label === null ? "it had none" : `it was "${before.label}"`;
        await addKeyEntry(tx, by, before, "key.relabelled", from);
        return { record: await getKey(tx, before.id), changed: true };
      });
    },

    rotateKey(id, options, by = ADMIN) {
      return sql.transaction(async (tx) => {
        const old = await getKey(tx, id, options);
        const desk = old.desk === null ? null : await activeDesk(tx, old.desk);
        requireRotatable(old, tx.now);
        await requireRoom(tx, desk, { isReplacement: true });
        const { overlapMs, expiresInMs = old.lifetime_ms } = options;
        const expiresAt = Math.min(tx.now + overlapMs, old.expires_at ?? Number.MAX_SAFE_INTEGER);
        await tx.run("UPDATE api_keys SET expires_at = $1 WHERE id = $2", expiresAt, old.id);
        const minted = await insertKey(tx, { ...old, expiresInMs }, by, `${SUCCESSOR_OF}${old.id}`);
        await setSuccessor(tx, old.id, minted.record.id, desk?.id ?? null);
        await addKeyEntry(tx, by, old, "key.rotated", `its successor is ${minted.record.id}`);
        return { minted, old: await getKey(tx, old.id) };
      });
    },
  } satisfies Keys;
}

/** The condition for active keys, and its values from `$2` on. */
async function activeOf(sql: Reader, of: KeysOf): Promise<[condition: string, values: Value[]]> {
  if (of === EVERY_DESK) return [IS_ACTIVE_ANYWHERE, []];
  return [IS_ACTIVE, [await deskIdOf(sql, of)]];
}

function requireRotatable(key: ApiKey, now: number): void {
  const state = keyState(key, now);
  if (state !== "active") {
    throw new UserError(
      `Key ${key.id} is ${state}, so it cannot be rotated: mint a new one`,
      mintLike(key),
    );
  }
  // A second one would make the overlap ambiguous.
  if (key.successor_id === null) return;
  throw new UserError(
    `Key ${key.id} has been rotated already, and its successor is ${key.successor_id}: rotate that one`,
    `key rotate ${key.successor_id}`,
  );
}

/** The command that mints another key of this kind. */
function mintLike({ scope, desk }: ApiKey): string {
  return `key mint${scope === "read" ? " --read" : ""}${desk === null ? "" : ` --desk ${desk}`}`;
}

/** Also of the keys that the old one has replaced, and of those that had the same successor, which has ended. */
async function setSuccessor(
  tx: Tx,
  old: string,
  successor: string,
  desk: number | null,
): Promise<void> {
  await tx.run(
    `UPDATE api_keys SET successor_id = $1
     WHERE desk_id IS NOT DISTINCT FROM $2 AND (id = $3 OR successor_id = $3
       OR successor_id = (SELECT successor_id FROM api_keys WHERE id = $3))`,
    successor,
    desk,
    old,
  );
}

async function insertKey(
  tx: Tx,
  {
    scope,
    desk,
    label,
    expiresInMs,
    limits,
  }: Omit<NewKey, "scope" | "limits"> & Pick<ApiKey, "scope" | "limits">,
  by: Author,
  detail: string | null,
): Promise<MintedKey> {
  const key = generateKey(scope);
  const id = ulid(tx.now);
  await tx.run(
    `INSERT INTO api_keys (id, scope, desk_id, label, key_hash, last4, created_at, expires_at, lifetime_ms, limits)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    id,
    scope,
    await deskIdOf(tx, desk),
    label,
    hashKey(key),
    key.slice(-4),
    tx.now,
    expiresInMs === null ? null : tx.now + expiresInMs,
    expiresInMs,
    limits && JSON.stringify(limits),
  );
  const record = await getKey(tx, id);
  const details = [
    detail ?? describeScope(record),
    limits && `limited to ${describeLimits(limits)}`,
  ];
  await addKeyEntry(tx, by, record, "key.created", details.filter(Boolean).join("; ") || null);
  return { key, record };
}

function describeScope({ scope, desk }: ApiKey): string | null {
  if (scope === "send") return null;
  return desk === null ? "it reads the signals of all desks" : "it reads the desk's signals";
}

async function addKeyEntry(
  tx: Tx,
  by: Author,
  { id: keyId, desk }: ApiKey,
  action: AuditAction,
  detail: string | null,
): Promise<void> {
  await addEntry(tx, by, { deskId: await deskIdOf(tx, desk), action, keyId, detail });
}
