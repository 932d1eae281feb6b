/**
 * A map from ids to thousands of short-lived objects. A plain `Map` replaces its table again and again, and
 * old tables keep their objects in memory for long. Here, the `Map` contains only numbers: the positions of
 * the objects in an array.
 */
export class SlotMap<T extends object> {
  readonly #slots = new Map<string, number>();
  readonly #items: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#slots.size;
  }

  has(id: string): boolean {
    return this.#slots.has(id);
  }

  get(id: string): T | undefined {
    const slot = this.#slots.get(id);
    return slot === undefined ? undefined : this.#items[slot];
  }

  set(id: string, item: T): void {
    const slot = this.#slots.get(id) ?? this.#free.pop() ?? this.#items.length;
    this.#slots.set(id, slot);
    this.#items[slot] = item;
  }

  delete(id: string): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.#slots.delete(id);
    this.#items[slot] = undefined;
    this.#free.push(slot);
  }

  entries(): [string, T][] {
    return [...this.#slots].map(([id, slot]) => [id, this.#items[slot]!]);
  }
}
