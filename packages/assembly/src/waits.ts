/** The calls of `result` and `follow` that wait in this process. They wait until the process is stopped. */
export class Waits {
  readonly #pending = new Set<() => void>();
  #areOver = false;

  /** True: the process was stopped, so nothing may wait any more. */
  get areOver(): boolean {
    return this.#areOver;
  }

  /** `leave` is called when the process is stopped. The returned function removes it. */
  add(leave: () => void): () => void {
    this.#pending.add(leave);
    return () => this.#pending.delete(leave);
  }

  begin(): void {
    this.#areOver = false;
  }

  end(): void {
    this.#areOver = true;
    for (const leave of [...this.#pending]) leave();
  }
}
