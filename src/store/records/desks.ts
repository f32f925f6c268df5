/** Desks. */
import { ulid } from "ulid";
import {
  checkDeskName,
  type Desk,
  type DeskOverview,
  SIGNALS_COUNTED_MAX,
} from "../../domain/desk/desk.ts";
import {
  checkSilenceRule,
  describeSilenceRule,
  SILENCE_DEFAULT,
  type SilenceRule,
  type WatchedHours,
} from "../../domain/desk/silence.ts";
import { ADMIN } from "../../domain/storage/author.ts";
import { type HashedSignal, isIntact } from "../../domain/signal/hash.ts";
import type { Desks } from "../../domain/storage/registry.ts";
import { UserError } from "../../lib/errors.ts";
import { addEntry } from "./audit.ts";
import { activeDesk, getDesk, selectDesks } from "./desk-rows.ts";
import { indexedBy } from "./dialect.ts";
import { EXPIRY } from "./key-rows.ts";
import { endSessions } from "./member-rows.ts";
import type { Reader, Sql } from "./sql.ts";

export function desks(sql: Sql) {
  return {
    async createDesk(name, options) {
      checkDeskName(name);
      return sql.transaction(async (tx) => {
        const [existing] = await selectDesks(tx, "WHERE name = $1", name);
        if (existing !== undefined) {
          await activeDesk(tx, name);
          if (options.ifMissing) return { desk: existing, created: false };
          throw new UserError(
            `Desk "${name}" already exists: mint a key for it`,
            `key mint --desk ${name}`,
          );
        }
        const { now } = tx;
        const insert = "INSERT INTO desks (uid, name, created_at) VALUES ($1, $2, $3)";
        await tx.run(insert, ulid(now), name, now);
        const desk = await getDesk(tx, name);
        await addEntry(tx, ADMIN, { deskId: desk.id, action: "desk.created" });
        return { desk, created: true };
      });
    },

    listDesks: () => selectDesks(sql),

    async listOverviews(signalsMax = SIGNALS_COUNTED_MAX) {
      const overviews = (await selectDesks(sql)).map((desk) => overview(sql, desk, signalsMax));
      return Promise.all(overviews);
    },

    getDesk: (ref) => getDesk(sql, ref),

    async renameDesk(name, newName) {
      checkDeskName(newName);
      return sql.transaction(async (tx) => {
        const { id } = await getDesk(tx, name);
        if (newName === name) return { changed: false };
        const [other] = await selectDesks(tx, "WHERE name = $1", newName);
        if (other !== undefined) {
          const state = other.archived_at === null ? "" : ", and is archived";
          throw new UserError(
            `Desk "${newName}" already exists${state}: use another name, or rename that desk first`,
            `desk rename ${newName} ANOTHER`,
          );
        }
        await tx.run("UPDATE desks SET name = $1 WHERE id = $2", newName, id);
        const detail = `it was "${name}"`;
        await addEntry(tx, ADMIN, { deskId: id, action: "desk.renamed", detail });
        return { changed: true };
      });
    },

    archiveDesk(name, isArchived) {
      return sql.transaction(async (tx) => {
        const { id, archived_at } = await getDesk(tx, name);
        if ((archived_at !== null) === isArchived) return { changed: false };
        const at = isArchived ? tx.now : null;
        await tx.run("UPDATE desks SET archived_at = $1 WHERE id = $2", at, id);
        await endSessions(tx, "desk_id", id);
        const action = isArchived ? "desk.archived" : "desk.unarchived";
        await addEntry(tx, ADMIN, { deskId: id, action });
        return { changed: true };
      });
    },

    requirePasskeys(name, isRequired) {
      return sql.transaction(async (tx) => {
        const desk = await getDesk(tx, name);
        if (desk.passkeys_required === isRequired) return { changed: false };
        const update = "UPDATE desks SET passkeys_required = $1 WHERE id = $2";
        await tx.run(update, isRequired ? 1 : 0, desk.id);
        const action = isRequired ? "desk.passkeys_required" : "desk.passkeys_optional";
        await addEntry(tx, ADMIN, { deskId: desk.id, action });
        return { changed: true };
      });
    },

    keepSent(ref, isKept, by) {
      return sql.transaction(async (tx) => {
        const { id, keeps_sent } = await getDesk(tx, ref);
        if (keeps_sent === isKept) return { changed: false };
        await tx.run("UPDATE desks SET keeps_sent = $1 WHERE id = $2", isKept ? 1 : 0, id);
        await addEntry(tx, by, {
          deskId: id,
          action: isKept ? "desk.sent_kept" : "desk.sent_forgotten",
        });
        return { changed: true };
      });
    },

    limitKeys(name, keysMax) {
      return sql.transaction(async (tx) => {
        const { id } = await getDesk(tx, name);
        await tx.run("UPDATE desks SET keys_max = $1 WHERE id = $2", keysMax, id);
        const detail = `to ${keysMax}`;
        await addEntry(tx, ADMIN, { deskId: id, action: "desk.keys_limited", detail });
      });
    },

    async silenceRule(ref) {
      const { id } = await getDesk(sql, ref);
      const row = await sql.get<SilenceRow>(
        "SELECT silence_ms, silence_hours FROM desks WHERE id = $1",
        id,
      );
      return row === null ? SILENCE_DEFAULT : silenceRuleOf(row);
    },

    setSilenceRule(ref, rule, by) {
      const { spanMs, hours } = checkSilenceRule(rule);
      return sql.transaction(async (tx) => {
        const { id } = await getDesk(tx, ref);
        await tx.run(
          "UPDATE desks SET silence_ms = $1, silence_hours = $2 WHERE id = $3",
          spanMs,
          hours === null ? null : JSON.stringify(hours),
          id,
        );
        const detail = describeSilenceRule({ spanMs, hours });
        await addEntry(tx, by, { deskId: id, action: "desk.silence_set", detail });
      });
    },
  } satisfies Desks;
}

export interface SilenceRow {
  readonly silence_ms: number | null;
  readonly silence_hours: string | null;
}

export function silenceRuleOf({ silence_ms, silence_hours }: SilenceRow): SilenceRule {
  const hours = silence_hours === null ? null : (JSON.parse(silence_hours) as WatchedHours);
  return { spanMs: silence_ms, hours };
}

type LatestSignal = NonNullable<DeskOverview["latest_signal"]>;
type Counts = Pick<DeskOverview, "active_keys" | "read_keys" | "members" | "signals">;

async function overview(sql: Reader, desk: Desk, signalsMax: number): Promise<DeskOverview> {
  const activeKeys = `api_keys ${indexedBy("api_keys_active")}
    WHERE desk_id = $1 AND revoked_at IS NULL AND ${EXPIRY} > $2`;
  const counts = (await sql.get<Counts>(
    `SELECT (SELECT count(*) FROM ${activeKeys}) AS active_keys,
       (SELECT count(*) FROM ${activeKeys} AND scope = 'read') AS read_keys,
       (SELECT count(*) FROM members WHERE desk_id = $1 AND removed_at IS NULL) AS members,
       (SELECT count(*) FROM (SELECT 1 FROM signals ${indexedBy("signals_desk")}
         WHERE desk_id = $1 LIMIT $3) AS counted) AS signals`,
    desk.id,
    sql.now,
    signalsMax,
  )) as Counts;
  const latest = await sql.get<HashedSignal>(
    `SELECT * FROM signals ${indexedBy("signals_desk")} WHERE desk_id = $1 ORDER BY seq DESC LIMIT 1`,
    desk.id,
  );
  const ended = desk.archived_at === null ? {} : { active_keys: 0, read_keys: 0 };
  return { ...desk, ...counts, ...ended, latest_signal: latest && toLatest(latest) };
}

function toLatest(signal: HashedSignal): LatestSignal {
  const { id, received_at, symbol } = signal;
  return { id, received_at, symbol: isIntact(signal) ? symbol : null };
}
