/** How many exports run at once: each takes the console's time for as long as its reader likes. */

const MEMBER_MAX = 2;
const DESK_MAX = 4;

export type Slot =
  /** `giveBack`: to be called at the end, however it came; twice is once. */
  | { readonly outcome: "taken"; readonly giveBack: () => void }
  /** The member has as many as one member may. */
  | { readonly outcome: "member is full" }
  /** The desk's members together have as many as one desk may. */
  | { readonly outcome: "desk is full" };

/** Slots are counted per desk, so that no desk waits for another's exports. */
export class ExportSlots {
  readonly #taken = new Set<{ readonly memberId: string; readonly deskId: number }>();

  take(owner: { readonly memberId: string; readonly deskId: number }): Slot {
    const ofDesk = [...this.#taken].filter(({ deskId }) => deskId === owner.deskId);
    const ofMember = ofDesk.filter(({ memberId }) => memberId === owner.memberId);
    if (ofMember.length >= MEMBER_MAX) return { outcome: "member is full" };
    if (ofDesk.length >= DESK_MAX) return { outcome: "desk is full" };
    const slot = { memberId: owner.memberId, deskId: owner.deskId };
    this.#taken.add(slot);
    return { outcome: "taken", giveBack: () => void this.#taken.delete(slot) };
  }
}
