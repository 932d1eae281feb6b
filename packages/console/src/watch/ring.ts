export type WindowName = '15m' | '1h' | '24h';

const pointsMax = 180;

export const windowMs: Readonly<Record<WindowName, number>> = { '15m': 9e5, '1h': 36e5, '24h': 864e5 };

export function stepMs(window: WindowName): number {
  return windowMs[window] / pointsMax;
}

/** The values of one figure over one time window. New values overwrite the oldest ones. */
class Ring {
  readonly #values = new Float64Array(pointsMax).fill(Number.NaN);
  readonly #stepMs: number;
  #last = -1;

  constructor(everyMs: number) {
    this.#stepMs = everyMs;
  }

  /** With `adds`, values of the same step are added up. Otherwise the latest value is kept. */
  put(now: number, value: number, adds: boolean): void {
    const place = Math.floor(now / this.#stepMs);
    if (this.#last >= 0 && place - this.#last < pointsMax)
      for (let each = this.#last + 1; each <= place; each++) this.#values[each % pointsMax] = Number.NaN;
    else if (place !== this.#last) this.#values.fill(Number.NaN);
    this.#last = place;
    const at = place % pointsMax;
    const known = this.#values[at]!;
    this.#values[at] = adds && !Number.isNaN(known) ? known + value : value;
  }

  points(now: number): (number | null)[] {
    const end = Math.floor(now / this.#stepMs);
    return Array.from({ length: pointsMax }, (_, index) => {
      const place = end - pointsMax + 1 + index;
      if (place > this.#last || place <= this.#last - pointsMax || place < 0) return null;
      const value = this.#values[place % pointsMax]!;
      return Number.isNaN(value) ? null : value;
    });
  }
}

export class Series {
  readonly #rings: Readonly<Record<WindowName, Ring>>;
  readonly #adds: boolean;

  /** With `adds`, the values are counts, and values of the same step are added up. */
  constructor(adds: boolean) {
    this.#adds = adds;
    const ring = (window: WindowName) => new Ring(stepMs(window));
    this.#rings = { '15m': ring('15m'), '1h': ring('1h'), '24h': ring('24h') };
  }

  put(now: number, value: number): void {
    for (const ring of Object.values(this.#rings)) ring.put(now, value, this.#adds);
  }

  points(window: WindowName, now: number): (number | null)[] {
    return this.#rings[window].points(now);
  }

  sum(window: WindowName, now: number): number {
    return this.points(window, now).reduce<number>((total, point) => total + (point ?? 0), 0);
  }
}
