/** The latest items of each group, up to a number, and of all groups together. Their order does not matter. */
export class Latest<Group, Item> {
  readonly #perGroup: number;
  readonly #max: number;
  #groups = new Map<Group, { items: Item[]; count: number }>();
  #size = 0;

  constructor(perGroup: number, max: number) {
    this.#perGroup = perGroup;
    this.#max = max;
  }

  /** Calls `make` only if the item has a place. */
  add(name: Group, make: () => Item): void {
    const group = this.#groups.get(name) ?? { items: [], count: 0 };
    const isFull = group.items.length === this.#perGroup || this.#size === this.#max;
    if (isFull && group.items.length === 0) return;
    const place = isFull ? group.count % group.items.length : group.items.length;
    if (!isFull) this.#size += 1;
    group.items[place] = make();
    group.count += 1;
    this.#groups.set(name, group);
  }

  /** Returns all, and forgets them. */
  take(): Item[] {
    const all = [...this.#groups.values()].flatMap(({ items }) => items);
    this.#groups = new Map();
    this.#size = 0;
    return all;
  }
}
