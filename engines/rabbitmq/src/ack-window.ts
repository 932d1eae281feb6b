/**
 * The deliveries of one channel that are not yet acknowledged, by delivery tag. Computes which
 * acknowledgements to send.
 */
export class AckWindow<Delivery> {
  /** The deliveries that are not acknowledged, in the order of their tags. */
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

  /** Removes and returns all deliveries. */
  clear(): Delivery[] {
    const deliveries = [...this.#open.values()];
    this.#open.clear();
    return deliveries;
  }

  /**
   * Removes deliveries, and returns the acknowledgements to send. `upTo` acknowledges all deliveries up to
   * that tag at once. `single` are the other tags, each with an acknowledgement of its own. A tag that is not
   * in the window is ignored: the server closes a channel that acknowledges a delivery twice.
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
