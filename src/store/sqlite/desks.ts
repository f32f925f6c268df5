/** Desks in SQLite. */
import { ulid } from "ulid";
import {
  checkDeskName,
  type Desk,
  type DeskOverview,
  SIGNALS_COUNTED_MAX,
} from "../../domain/desk.ts";
import { UserError } from "../../domain/errors.ts";
import { ADMIN } from "../../domain/storage.ts";
import { endSessions } from "./member-rows.ts";
import { Records } from "./records.ts";

/** Written like the index `api_keys_active`, so that SQLite uses it. */
export const IS_ACTIVE = `api_keys.desk_id IS $desk AND api_keys.revoked_at IS NULL
  AND ifnull(api_keys.expires_at, 9223372036854775807) > $now`;

type LatestSignal = NonNullable<DeskOverview["latest_signal"]>;
type Counts = Pick<DeskOverview, "active_keys" | "read_keys" | "members" | "signals">;

export abstract class SqliteDesks extends Records {
  createDesk(name: string, options: { ifMissing: boolean }): { desk: Desk; created: boolean } {
    checkDeskName(name);
    return this.change(() => {
      const [existing] = this.desks("WHERE name = ?", name);
      if (existing !== undefined) {
        this.activeDesk(name);
        if (options.ifMissing) return { desk: existing, created: false };
        throw new UserError(
          `Desk "${name}" already exists: mint a key for it`,
          `key mint --desk ${name}`,
        );
      }
      const now = this.now();
      const sql = "INSERT INTO desks (uid, name, created_at) VALUES (?, ?, ?)";
      this.db.query(sql).run(ulid(now), name, now);
      const desk = this.getDesk(name);
      this.audit(ADMIN, { deskId: desk.id, action: "desk.created" });
      return { desk, created: true };
    });
  }

  listDesks(): Desk[] {
    return this.desks();
  }

  listOverviews(signalsMax: number = SIGNALS_COUNTED_MAX): DeskOverview[] {
    return this.desks().map((desk) => ({
      ...desk,
      ...this.#counts(desk, signalsMax),
      latest_signal: this.#latestSignal(desk.id),
    }));
  }

  renameDesk(name: string, newName: string): { changed: boolean } {
    checkDeskName(newName);
    return this.change(() => {
      const { id } = this.getDesk(name);
      if (newName === name) return { changed: false };
      const [other] = this.desks("WHERE name = ?", newName);
      if (other !== undefined) {
        const state = other.archived_at === null ? "" : ", and is archived";
        throw new UserError(
          `Desk "${newName}" already exists${state}: use another name, or rename that desk first`,
          `desk rename ${newName} ANOTHER`,
        );
      }
      this.db.query("UPDATE desks SET name = ? WHERE id = ?").run(newName, id);
      const detail = `it was "${name}"`;
      this.audit(ADMIN, { deskId: id, action: "desk.renamed", detail });
      return { changed: true };
    });
  }

  archiveDesk(name: string, isArchived: boolean): { changed: boolean } {
    return this.change(() => {
      const { id, archived_at } = this.getDesk(name);
      if ((archived_at !== null) === isArchived) return { changed: false };
      const now = this.now();
      const sql = "UPDATE desks SET archived_at = ? WHERE id = ?";
      this.db.query(sql).run(isArchived ? now : null, id);
      endSessions(this.db, "desk_id", id, now);
      this.audit(ADMIN, { deskId: id, action: isArchived ? "desk.archived" : "desk.unarchived" });
      return { changed: true };
    });
  }

  requirePasskeys(name: string, isRequired: boolean): { changed: boolean } {
    return this.change(() => {
      const desk = this.getDesk(name);
      if (desk.passkeys_required === isRequired) return { changed: false };
      const sql = "UPDATE desks SET passkeys_required = ? WHERE id = ?";
      this.db.query(sql).run(isRequired ? 1 : 0, desk.id);
      const action = isRequired ? "desk.passkeys_required" : "desk.passkeys_optional";
      this.audit(ADMIN, { deskId: desk.id, action });
      return { changed: true };
    });
  }

  limitKeys(name: string, keysMax: number): void {
    this.change(() => {
      const { id } = this.getDesk(name);
      this.db.query("UPDATE desks SET keys_max = ? WHERE id = ?").run(keysMax, id);
      this.audit(ADMIN, { deskId: id, action: "desk.keys_limited", detail: `to ${keysMax}` });
    });
  }

  #counts({ id, archived_at }: Desk, max: number): Counts {
    const counts = this.db
      .query<Counts, Record<string, number>>(
        `SELECT (SELECT count(*) FROM api_keys INDEXED BY api_keys_active WHERE ${IS_ACTIVE})
             AS active_keys,
           (SELECT count(*) FROM api_keys INDEXED BY api_keys_active WHERE ${IS_ACTIVE}
             AND scope = 'read') AS read_keys,
           (SELECT count(*) FROM members WHERE desk_id = $desk AND removed_at IS NULL) AS members,
           (SELECT count(*) FROM (SELECT 1 FROM signals INDEXED BY signals_desk
             WHERE desk_id = $desk LIMIT $max)) AS signals`,
      )
      .get({ desk: id, now: this.now(), max }) as Counts;
    return archived_at === null ? counts : { ...counts, active_keys: 0, read_keys: 0 };
  }

  #latestSignal(deskId: number): LatestSignal | null {
    return this.db
      .query<LatestSignal, [number]>(
        `SELECT id, received_at, symbol FROM signals INDEXED BY signals_desk
         WHERE desk_id = ? ORDER BY seq DESC LIMIT 1`,
      )
      .get(deskId);
  }
}
