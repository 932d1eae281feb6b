import { type Clock, type Random, systemClock, systemRandom } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import type { Engine } from '../engine.ts';
import { type Features, missing } from '../features.ts';
import { defaultSizeLimits, type SizeLimits } from '../size-limits.ts';
import { memoryBroker } from './broker.ts';
import { memoryLedger } from './ledger.ts';
import { memoryRateLimits } from './rate-limits.ts';
import { defaultBounds, type MemoryBounds, Room, removeExpired } from './room.ts';
import { MemoryStorage, type MemoryTransaction } from './storage.ts';
import { memoryTriage, writeAudit } from './triage.ts';

export interface MemoryOptions extends SomeBounds {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  /** Of another engine, to share what it holds, or to go on after it. */
  readonly storage?: MemoryStorage | undefined;
  readonly limits?: SizeLimits | undefined;
  /** Called before each write; what it throws prevents it, and the write before it has been made. For tests of crashes. */
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

/** The reference engine has every contract and every method. */
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

/** Everything in memory, small and exact: for tests, for the simulator, and to read. */
export function memoryEngine(options: MemoryOptions = {}): MemoryEngine {
  refuseUnknown(known, options);
  const { clock = systemClock, random = systemRandom, storage = new MemoryStorage() } = options;
  const { limits = defaultSizeLimits, beforeWrite = () => {} } = options;
  const said = Object.entries(options).filter(([, value]) => value !== undefined);
  const bounds: MemoryBounds = { ...defaultBounds, ...Object.fromEntries(said) };
  const room = new Room(storage, clock, random, bounds, limits, beforeWrite);

  return {
    name: 'memory',
    durability: 'none',
    features: memoryFeatures,
    broker: memoryBroker(room),
    ledger: memoryLedger(room),
    triage: memoryTriage(room),
    rateLimits: memoryRateLimits(room),

    async sweep(limit) {
      return room.write((now) => sweep(room, now, limit));
    },

    async close() {},
  };
}

function sweep(room: Room, now: number, limit: number): number {
  const { storage } = room;
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
  // A replay that is under way still has to be heard of.
  const removable = ({ operation, removedAt }: { operation: string | undefined; removedAt: number }) =>
    operation === undefined ? removedAt : Infinity;
  const removed = removeExpired(storage.parked, removable, now, left);
  if (removed.length > 0) {
    writeAudit(room, 'retention', removed, {
      who: 'retention',
      why: 'they had been kept as long as was said',
    });
  }
  return limit - left + removed.length;
}
