import { type Clock, type Random, systemClock, systemRandom } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import type { Engine } from '../engine.ts';
import { type Features, missing } from '../features.ts';
import { defaultSizeLimits, type SizeLimits } from '../size-limits.ts';
import { memoryBroker } from './broker.ts';
import { memoryLedger } from './ledger.ts';
import { memoryRateLimits } from './rate-limits.ts';
import { defaultBounds, type MemoryBounds, removeExpired, SharedState } from './shared-state.ts';
import { MemoryStorage, type MemoryTransaction } from './storage.ts';
import { memoryTriage, writeAudit } from './triage.ts';

export interface MemoryOptions extends SomeBounds {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  /**
   * The storage of another engine. Give it to share the data of that engine, or to continue with the data of a closed
   * engine.
   */
  readonly storage?: MemoryStorage | undefined;
  readonly limits?: SizeLimits | undefined;
  /**
   * Called before each write. If it throws, that write does not happen, and earlier writes stay. Tests use it to
   * simulate crashes.
   */
  readonly beforeWrite?: (() => void) | undefined;
}

type SomeBounds = { readonly [Bound in keyof MemoryBounds]?: MemoryBounds[Bound] | undefined };

const known: Readonly<Record<keyof MemoryOptions, unknown>> = {
  clock: true,
  random: true,
  storage: true,
  limits: true,
  beforeWrite: true,
  ...defaultBounds,
};

export type MemoryEngine = Required<Engine<MemoryTransaction>>;

export const memoryFeatures: Features = {
  ordering: true,
  parkedHoldsKey: true,
  anyDelay: true,
  publishOnce: true,
  atomicPublish: true,
  retriesShare: true,
  suspects: true,
  waitingList: true,
  quarantine: true,
  sharedControls: true,
  doorbell: true,
  retention: true,
  marksWithSettlement: true,
  sharedTransaction: true,
  parksInTriage: true,
  durable: missing('memory ends with the process'),
};

/**
 * An engine that keeps all data in memory. Use it for tests and for the simulator, or read it as the shortest example
 * of an engine.
 */
export function memoryEngine(options: MemoryOptions = {}): MemoryEngine {
  assertKnownFields(known, options);
  const { clock = systemClock, random = systemRandom, storage = new MemoryStorage() } = options;
  const { limits = defaultSizeLimits, beforeWrite = () => {} } = options;
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const bounds: MemoryBounds = { ...defaultBounds, ...Object.fromEntries(given) };
  const shared = new SharedState(storage, clock, random, bounds, limits, beforeWrite);

  return {
    name: 'memory',
    durability: 'none',
    features: memoryFeatures,
    broker: memoryBroker(shared),
    ledger: memoryLedger(shared),
    triage: memoryTriage(shared),
    rateLimits: memoryRateLimits(shared),

    async sweep(limit) {
      return shared.write((now) => sweep(shared, now, limit));
    },

    async close() {},
  };
}

function sweep(shared: SharedState, now: number, limit: number): number {
  const { storage } = shared;
  let left = limit;
  for (const topic of storage.topics.values()) {
    const expired = topic.settled.filter(({ removedAt }) => removedAt <= now).slice(0, left);
    const gone = new Set(expired);
    topic.settled = topic.settled.filter((kept) => !gone.has(kept));
    left -= gone.size;
  }
  left -= storage.keys.sweep(now, left);
  left -= removeExpired(storage.marks, (removedAt) => removedAt, now, left).length;
  left -= removeExpired(storage.tats, (tat) => tat, now, left).length;
  // Keep an event that belongs to a replay, even if it has expired: the replay still has to count its result.
  const removable = ({ operation, removedAt }: { operation: string | undefined; removedAt: number }) =>
    operation === undefined ? removedAt : Infinity;
  const removed = removeExpired(storage.parked, removable, now, left);
  if (removed.length > 0) {
    writeAudit(shared, 'retention', removed, {
      who: 'retention',
      why: 'their retention time is over',
    });
  }
  return limit - left + removed.length;
}
