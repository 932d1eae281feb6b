/** The states of one breaker over time: from when on it was in which state. */
type Strip = [from: number, state: string][];

const keptMs = 9e5;
const changesMax = 60;
/** Breakers whose past is kept; the oldest are forgotten first. */
const stripsMax = 2000;

/** A change of a breaker that was just seen. */
export interface BreakerChange {
  readonly name: string;
  readonly from: string | undefined;
  readonly to: string;
}

/** The last 15 minutes of every breaker, as the reports of processes tell them. */
export class BreakerStrips {
  readonly #strips = new Map<string, Strip>();

  /** Returns a change, if the state is another one than before. */
  put(name: string, state: string, since: number, now: number): BreakerChange | undefined {
    const strip = this.#strips.get(name) ?? [];
    const last = strip.at(-1);
    if (last?.[1] === state) return undefined;
    strip.push([last ? Math.max(since, last[0]) : since, state]);
    while (strip.length > changesMax || (strip.length > 1 && strip[1]![0] < now - keptMs)) strip.shift();
    if (!this.#strips.has(name) && this.#strips.size >= stripsMax)
      this.#strips.delete(this.#strips.keys().next().value!);
    this.#strips.set(name, strip);
    return last && { name, from: last[1], to: state };
  }

  /** All strips whose names begin so. */
  of(prefix: string): Map<string, Strip> {
    const found = new Map<string, Strip>();
    for (const [name, strip] of this.#strips)
      if (name.startsWith(prefix)) found.set(name.slice(prefix.length), strip);
    return found;
  }
}
