/**
 * The deliveries of one channel that are not yet acknowledged, by delivery tag. Computes which
 * acknowledgements to send.
 */
export class AckWindow<Delivery> {
  /** The deliveries are in the order of their tags. */
  readonly #open = new Map<number, Delivery>();

  get size(): number {
    return this.#open.size;
  }

  add(tag: number, delivery: Delivery): void {
    this.#open.set(tag, delivery);
  }

  has(tag: number): boolean {
    return this.#open.has(tag);
  }

  remove(tag: number): boolean {
    return this.#open.delete(tag);
  }

  clear(): Delivery[] {
    const deliveries = [...this.#open.values()];
    this.#open.clear();
    return deliveries;
  }

  /**
   * Removes deliveries, and returns the acknowledgements to send: one for all tags up to `upTo`, and one for
   * each tag in `single`. Unknown tags are ignored, because the server closes a channel that acknowledges
   * twice.
   */
  settle(tags: readonly number[]): { readonly upTo: number | undefined; readonly single: number[] } {
    let upTo: number | undefined;
    let count = 0;
    // Events are usually settled in the order of their delivery. In this case, no set is needed.
    for (const tag of this.#open.keys()) {
      if (tags[count] !== tag) break;
      this.#open.delete(tag);
      upTo = tag;
      count += 1;
    }
    if (count === tags.length) return { upTo, single: [] };
    const settled = new Set(tags.slice(count).filter((tag) => this.#open.has(tag)));
    for (const tag of this.#open.keys()) {
      if (!settled.delete(tag)) break;
      this.#open.delete(tag);
      upTo = tag;
    }
    for (const tag of settled) this.#open.delete(tag);
    return { upTo, single: [...settled] };
  }
}
