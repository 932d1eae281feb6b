import type { ServiceSettings } from '@holdfast/config';
import { broken, type Failure, rejected, tooMany } from './failures.ts';

type Entry = NonNullable<ServiceSettings['recording']>[number];

/** Recorded answers of a real service, sorted by time. The load of the simulation does not change them. */
export class Recording {
  readonly #entries: readonly Entry[];

  constructor(entries: readonly Entry[]) {
    this.#entries = [...entries].sort((a, b) => a.at - b.at);
  }

  /** Returns the entry whose time is nearest to `ms`. */
  at(ms: number): Entry {
    const entries = this.#entries;
    let low = 0;
    let high = entries.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (entries[middle]!.at >= ms) high = middle;
      else low = middle + 1;
    }
    const after = entries[low]!;
    const before = entries[low - 1];
    return before && ms - before.at <= Math.abs(after.at - ms) ? before : after;
  }

  static failure(gave: Entry['gave']): Failure | undefined {
    if (gave === 'ok') return undefined;
    if (gave === 'throttled') return tooMany(undefined);
    return gave === 'fatal' ? rejected() : broken();
  }
}
