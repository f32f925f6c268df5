/** Who did what. */
import type { AuditAction, AuditEntry, AuditPage, AuditRecord } from "../audit/audit.ts";
import type { DeskRef } from "../desk/desk.ts";
import type { Awaitable } from "./awaitable.ts";

export interface Audit {
  /** For events that change nothing else, such as a sign-in: a change writes its own entry. An
   * administrator's names the user of the operating system who ran this program. */
  append(entry: AuditEntry): Awaitable<void>;
  /** 0 without entries. */
  newestId(): Awaitable<number>;
  /** Of all desks, those after an id, oldest first. */
  listSince(since: {
    readonly after: number;
    readonly actions: readonly AuditAction[];
    readonly limit: number;
  }): Awaitable<AuditRecord[]>;
  /** Newest first. */
  list(page: AuditPage): Awaitable<AuditRecord[]>;
  /** Key id → the address of the member who created it, or null for an administrator. */
  creatorsOf(
    desk: DeskRef,
    keyIds: readonly string[],
  ): Awaitable<ReadonlyMap<string, string | null>>;
}
