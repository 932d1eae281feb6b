const ROWS = 10;

/**
 * Counters over a sliding window, in a circular buffer of rows. Each column is one counter.
 *
 * If the window is a time, each row covers a tenth of it. So the counts cover 90 to 100 % of the window. If
 * the window is a number of calls, each row is one call.
 */
export class SlidingCounts {
  readonly #cells: Int32Array;
  readonly #totals: Int32Array;
  /** The duration of a row in ms; 0 if the window is a number of calls. */
  readonly #rowMs: number;
  /** The index in `#cells` of the first cell of the newest row. */
  #at = 0;
  #index = -Infinity;
  /** When the newest row ends; −Infinity if the window is a number of calls. */
  #endsAt = -Infinity;

  /** `calls` above 0: the window is this number of calls, and `windowMs` is ignored. */
  constructor(columns: number, windowMs: number, calls = 0) {
    this.#totals = new Int32Array(columns);
    this.#cells = new Int32Array(columns * (calls || ROWS));
    this.#rowMs = calls > 0 ? 0 : windowMs / ROWS;
  }

  /**
   * Drops rows that are too old. If the window is a number of calls, it also starts a new row, so call it
   * once per call.
   */
  turn(now: number): void {
    if (now >= this.#endsAt) this.#move(now);
  }

  /** Adds one to a column of the newest row. */
  add(column: number): void {
    this.#cells[this.#at + column]!++;
    this.#totals[column]!++;
  }

  /**
   * Returns the sum of a column over all rows of the window. Call `turn` before, because it drops the rows
   * that are too old.
   */
  total(column: number): number {
    return this.#totals[column]!;
  }

  /** Returns the sums of all columns. Unlike `turn`, it never starts a new row for a call. */
  totals(now: number): readonly number[] {
    if (this.#rowMs > 0) this.turn(now);
    return [...this.#totals];
  }

  clear(): void {
    this.#cells.fill(0);
    this.#totals.fill(0);
  }

  /** Returns all rows in one array, oldest first. */
  save(now: number): number[] {
    if (this.#rowMs > 0) this.turn(now);
    const next = this.#at + this.#totals.length;
    return [...this.#cells.subarray(next), ...this.#cells.subarray(0, next)];
  }

  /**
   * Restores saved rows. The newest saved row becomes the current row. If there are too many rows, the oldest
   * are dropped.
   */
  restore(rows: readonly number[], now: number): void {
    if (this.#rowMs > 0) this.turn(now);
    this.clear();
    const cells = this.#cells;
    const columns = this.#totals.length;
    this.#at = cells.length - columns;
    cells.set(rows.slice(-cells.length), Math.max(0, cells.length - rows.length));
    for (const [i, count] of cells.entries()) this.#totals[i % columns]! += count;
  }

  #move(now: number): void {
    let steps = 1;
    if (this.#rowMs > 0) {
      const index = Math.floor(now / this.#rowMs);
      steps = Math.min(index - this.#index, ROWS);
      this.#index = index;
      this.#endsAt = (index + 1) * this.#rowMs;
    }
    const columns = this.#totals.length;
    for (; steps > 0; steps--) {
      this.#at = (this.#at + columns) % this.#cells.length;
      for (let column = 0; column < columns; column++) {
        this.#totals[column]! -= this.#cells[this.#at + column]!;
        this.#cells[this.#at + column] = 0;
      }
    }
  }
}
