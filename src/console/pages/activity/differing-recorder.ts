/** Groups duplicates that differed from their signal, by signal and key, until they are written. */
import type { ActivityBatch, Differing } from "../../../domain/activity/activity.ts";
import type { Identity } from "../../../domain/storage/append.ts";

/** For all desks, per batch. Further ones are not recorded. */
const GROUPS_MAX = 1_000;

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };
type Group = Mutable<Omit<Differing, "fields">> & { deskId: number; readonly fields: Set<string> };

export class DifferingRecorder {
  #groups = new Map<string, Group>();

  /** `differs`: the fields in which it differed. */
  add({ deskId, keyId }: Identity, at: number, signalId: string, differs: readonly string[]): void {
    const name = `${signalId} ${keyId}`;
    let group = this.#groups.get(name);
    if (group === undefined) {
      if (this.#groups.size === GROUPS_MAX) return;
      group = { deskId, signalId, keyId, count: 0, fields: new Set(), lastAt: at };
      this.#groups.set(name, group);
    }
    group.count += 1;
    group.lastAt = Math.max(group.lastAt, at);
    for (const field of differs) group.fields.add(field);
  }

  /** Returns the groups since the last call. */
  take(): ActivityBatch["differing"] {
    const taken = [...this.#groups.values()];
    this.#groups = new Map();
    return taken.map((group) => ({ ...group, fields: [...group.fields] }));
  }
}
