import type { Clock, Random } from 'holdfast';
import { type Page, type PageRequest, type Place, placeIn } from '../page.ts';
import type { SizeLimits } from '../size-limits.ts';
import { timeOrderedId } from '../time-ordered-id.ts';
import type { MemoryStorage } from './storage.ts';

/**
 * The limits of a memory engine. When a limit is reached, the engine refuses new entries. But for settled
 * events and audit entries, it removes the oldest instead.
 */
export interface MemoryBounds {
  readonly eventsMax: number;
  readonly settledMax: number;
  readonly keysMax: number;
  readonly marksMax: number;
  readonly parkedMax: number;
  readonly auditMax: number;
  readonly rateLimitsMax: number;
  readonly keepMarksMs: number;
  readonly keepParkedMs: number;
}

const dayMs = 24 * 60 * 60 * 1000;

export const defaultBounds: MemoryBounds = {
  eventsMax: 100_000,
  settledMax: 100_000,
  keysMax: 100_000,
  marksMax: 1_000_000,
  parkedMax: 100_000,
  auditMax: 10_000,
  rateLimitsMax: 100_000,
  keepMarksMs: 60 * dayMs,
  keepParkedMs: 30 * dayMs,
};

export class SharedState {
  readonly storage: MemoryStorage;
  readonly bounds: MemoryBounds;
  readonly limits: SizeLimits;
  readonly newId: () => string;
  readonly #clock: Clock;
  readonly #beforeWrite: () => void;

  constructor(
    storage: MemoryStorage,
    clock: Clock,
    random: Random,
    bounds: MemoryBounds,
    limits: SizeLimits,
    beforeWrite: () => void,
  ) {
    this.storage = storage;
    this.bounds = bounds;
    this.limits = limits;
    this.newId = storage.newId ??= timeOrderedId(clock, random);
    this.#clock = clock;
    this.#beforeWrite = beforeWrite;
  }

  now(): number {
    return this.#clock.epochMs();
  }

  write<T>(change: (now: number) => T): T {
    this.#beforeWrite();
    return change(this.now());
  }
}

/** Returns one page of a sorted list. The cursor stays valid if the last item of the page is removed. */
export function pageOf<T>(
  sorted: readonly T[],
  { limit, cursor }: PageRequest,
  placeOf: (item: T) => Place,
  comesAfter: (place: Place, other: Place) => boolean,
): Page<T> {
  const from = cursor === undefined ? undefined : placeIn(cursor);
  const left = from ? sorted.filter((item) => comesAfter(placeOf(item), from)) : sorted;
  const items = left.slice(0, limit);
  const last = items.at(-1);
  return { items, cursor: last && left.length > limit ? JSON.stringify(placeOf(last)) : undefined };
}

export function oldestFirst([number]: Place, [other]: Place): boolean {
  return number > other;
}

export function latestFirst([number, text]: Place, [other, otherText]: Place): boolean {
  return number < other || (number === other && text < otherText);
}

export function removeExpired<T>(
  items: Map<string, T>,
  removedAt: (item: T) => number,
  now: number,
  limit: number,
): string[] {
  const removed: string[] = [];
  for (const [name, item] of items) {
    if (removed.length >= limit) break;
    if (removedAt(item) <= now) removed.push(name);
  }
  for (const name of removed) items.delete(name);
  return removed;
}
