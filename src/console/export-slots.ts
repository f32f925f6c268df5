/** An export is read for as long as its reader likes: so many at once, and none for whom there is no room. */

const OF_MEMBER_MAX = 2;
const OF_ALL_MAX = 8;

export type Slot =
  /** `giveBack`: to be called at the end, however it came; twice is once. */
  | { readonly outcome: "taken"; readonly giveBack: () => void }
  /** The member has as many as they may. */
  | { readonly outcome: "theirs" }
  /** All members together have. */
  | { readonly outcome: "busy" };

export class ExportSlots {
  /** Member → how many they have. */
  readonly #members = new Map<string, number>();

  take(memberId: string): Slot {
    const theirs = this.#members.get(memberId) ?? 0;
    if (theirs >= OF_MEMBER_MAX) return { outcome: "theirs" };
    const all = [...this.#members.values()].reduce((sum, count) => sum + count, 0);
    if (all >= OF_ALL_MAX) return { outcome: "busy" };
    this.#members.set(memberId, theirs + 1);
    let isTaken = true;
    const giveBack = (): void => {
      if (isTaken) this.#giveBack(memberId);
      isTaken = false;
    };
    return { outcome: "taken", giveBack };
  }

  #giveBack(memberId: string): void {
    const left = (this.#members.get(memberId) ?? 0) - 1;
    if (left > 0) this.#members.set(memberId, left);
    else this.#members.delete(memberId);
  }
}
