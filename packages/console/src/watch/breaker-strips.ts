/** The states of one circuit breaker, each with its start time in epoch ms. */
type Strip = [from: number, state: string][];

const keptMs = 9e5;
const changesMax = 60;
/** Above this number, the oldest circuit breaker is removed. */
const stripsMax = 2000;

export interface BreakerChange {
  readonly name: string;
  readonly from: string | undefined;
  readonly to: string;
}

/** The states of all circuit breakers over the last 15 minutes, from the reports of processes. */
export class BreakerStrips {
  readonly #strips = new Map<string, Strip>();

  /** Stores the state. Returns the change if the state is different from before. */
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

  /** Returns all strips whose names start with `prefix`, by the rest of the name. */
  of(prefix: string): Map<string, Strip> {
    const found = new Map<string, Strip>();
    for (const [name, strip] of this.#strips)
      if (name.startsWith(prefix)) found.set(name.slice(prefix.length), strip);
    return found;
  }
}
