import type { Clock, Random } from 'holdfast';
import type { Page, PageRequest } from '../page.ts';
import type { SizeLimits } from '../size-limits.ts';
import { timeOrderedId } from '../time-ordered-id.ts';
import type { MemoryStorage } from './storage.ts';

/** What memory keeps at most; at the limit it refuses, and forgets nothing that someone relies on. */
export interface MemoryBounds {
  /** Unsettled events of all topics. */
  readonly eventsMax: number;
  readonly settledMax: number;
  readonly keysMax: number;
  readonly marksMax: number;
  readonly parkedMax: number;
  readonly auditMax: number;
  readonly countersMax: number;
  /** How long marks are kept: longer than the longest retry and the parking lot together. */
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
  countersMax: 100_000,
  keepMarksMs: 60 * dayMs,
  keepParkedMs: 30 * dayMs,
};

/** What the parts of a memory engine share. */
export class Room {
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
    this.newId = timeOrderedId(clock, random);
    this.#clock = clock;
    this.#beforeWrite = beforeWrite;
  }

  now(): number {
    return this.#clock.epochMs();
  }

  /** One durable write: all of `change`, or, if the process is stopped before it, nothing. */
  write<T>(change: (now: number) => T): T {
    this.#beforeWrite();
    return change(this.now());
  }
}

/** One page of `sorted`; `mark` gives each item its place in the order, as text. */
export function pageOf<T>(
  sorted: readonly T[],
  { limit, cursor }: PageRequest,
  mark: (item: T) => string,
): Page<T> {
  const start = cursor === undefined ? 0 : sorted.findIndex((item) => mark(item) === cursor) + 1;
  const items = sorted.slice(start, start + limit);
  const last = items.at(-1);
  return { items, cursor: last && start + limit < sorted.length ? mark(last) : undefined };
}

/** Removes at most `limit` items that have outlived their time. */
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
