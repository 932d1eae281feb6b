/** The deliveries of one channel that are not settled, by their tags, and what to send to settle some of them. */
export class AckWindow<Delivery> {
  /** In the order of their tags. */
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

  /** Removes and returns all. */
  clear(): Delivery[] {
    const deliveries = [...this.#open.values()];
    this.#open.clear();
    return deliveries;
  }

  /**
   * Removes tags, and returns the acknowledgements to send: one for all up to the first delivery that stays, and one for each
   * above it. A tag that was removed before has none: the server closes a channel that acknowledges twice.
   */
  settle(tags: readonly number[]): { readonly upTo: number | undefined; readonly single: number[] } {
    const settled = new Set(tags.filter((tag) => this.#open.has(tag)));
    let upTo: number | undefined;
    for (const tag of this.#open.keys()) {
      if (!settled.has(tag)) break;
      upTo = tag;
    }
    for (const tag of settled) this.#open.delete(tag);
    const single = [...settled].filter((tag) => upTo === undefined || tag > upTo);
    return { upTo, single };
  }
}
