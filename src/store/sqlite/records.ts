/** The base class of desks, keys, members, passkeys and the audit: it stores each change with its audit entry. */
import type { Database } from "bun:sqlite";
import type { AuditEntry } from "../../domain/audit.ts";
import type { Desk } from "../../domain/desk.ts";
import { NotFoundError, SignedOutError, UserError } from "../../domain/errors.ts";
import { redactKeys } from "../../domain/key.ts";
import { nearest } from "../../domain/nearest.ts";
import { shellQuoted } from "../../domain/shell.ts";
import type { Author } from "../../domain/storage.ts";
import { osUser } from "./os-user.ts";
import { hasMoved, inTransaction } from "./transaction.ts";

type DeskRow = Omit<Desk, "passkeys_required"> & { readonly passkeys_required: number };

export abstract class Records {
  protected readonly db: Database;
  protected readonly now: () => number;

  constructor(db: Database, now: () => number = Date.now) {
    this.db = db;
    this.now = now;
  }

  /**
   * Runs a change and its {@link audit} in one transaction. A restore holds the lock until it has renamed
   * the database: a change that waited for it would be lost.
   */
  protected change<T>(work: () => T): T {
    return inTransaction(this.db, () => {
      if (!hasMoved(this.db)) return work();
      throw new UserError(
        "The database was replaced by a restore while this command waited: run it again.",
      );
    });
  }

  /**
   * Call it inside {@link change}. Throws, and so undoes the change, if the author, the key or the subject
   * is of another desk, or the author was removed or signed out meanwhile: the last line of defence between
   * desks.
   */
  protected audit(
    { memberId, signedOutAt, client }: Author,
    { deskId, action, keyId, subjectId, detail }: Omit<AuditEntry, "actor" | "client">,
  ): void {
    if (memberId !== null && signedOutAt !== undefined) this.#requireSession(memberId, signedOutAt);
    const { changes } = this.db
      .query(
        `INSERT INTO audit (at, desk_id, member_id, action, key_id, subject_id, detail, client, os_user)
         SELECT $at, $desk, $actor, $action, $key, $subject, $detail, $client, $osUser
         WHERE ($actor IS NULL OR EXISTS
             (SELECT 1 FROM members WHERE id = $actor AND desk_id IS $desk AND removed_at IS NULL))
           AND ($subject IS NULL OR EXISTS
             (SELECT 1 FROM members WHERE id = $subject AND desk_id IS $desk))
           AND ($key IS NULL OR EXISTS
             (SELECT 1 FROM api_keys WHERE id = $key AND desk_id IS $desk))`,
      )
      .run({
        at: this.now(),
        desk: deskId,
        actor: memberId,
        action,
        key: keyId ?? null,
        subject: subjectId ?? null,
        detail: detail == null ? null : redactKeys(detail),
        client,
        osUser: memberId === null && client === null ? osUser() : null,
      });
    if (changes === 0) throw new NotFoundError("There is no such member of this desk.");
  }

  #requireSession(memberId: string, signedOutAt: number): void {
    const row = this.db
      .query<{ signed_out_at: number }, [string]>("SELECT signed_out_at FROM members WHERE id = ?")
      .get(memberId);
    if (row !== null && row.signed_out_at !== signedOutAt) throw new SignedOutError();
  }

  /** Throws {@link UserError} for an unknown name, as {@link getDesk}, and for an archived desk. */
  protected activeDesk(name: string): Desk {
    const desk = this.getDesk(name);
    if (desk.archived_at === null) return desk;
    throw new UserError(
      `Desk "${name}" is archived: bring it back`,
      `desk archive ${shellQuoted(name)} --undo`,
    );
  }

  /** Throws {@link UserError} for an unknown name, and suggests the nearest. */
  getDesk(name: string): Desk {
    const [desk] = this.desks("WHERE name = ?", name);
    if (desk !== undefined) return desk;
    const names = this.desks().map((other) => other.name);
    if (names.length === 0) {
      throw new UserError(
        `No desk exists yet: create "${name}"`,
        `desk create ${shellQuoted(name)}`,
      );
    }
    const near = nearest(name, names);
    const guess = near === null ? "" : `; the nearest name is "${near}"`;
    throw new UserError(`There is no desk "${name}"${guess}: list the desks`, "desk list");
  }

  protected desks(clause = "ORDER BY name", ...values: string[]): Desk[] {
    return this.db
      .query<DeskRow, string[]>(
        `SELECT id, name, created_at, archived_at, differing_duplicates, passkeys_required, keys_max
         FROM desks ${clause}`,
      )
      .all(...values)
      .map((row) => ({ ...row, passkeys_required: row.passkeys_required === 1 }));
  }
}
