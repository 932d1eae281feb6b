import { type Clock, type Random, systemClock, systemRandom } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { subject } from '../audit.ts';
import type { Engine } from '../engine.ts';
import { type Features, missing } from '../features.ts';
import { defaultSizeLimits, type SizeLimits } from '../size-limits.ts';
import { memoryAudit, writeAudit } from './audit.ts';
import { memoryBroker } from './broker.ts';
import { memoryJournal } from './journal.ts';
import { memoryLedger } from './ledger.ts';
import { forgetProcesses, memoryPresence } from './presence.ts';
import { memoryRateLimits } from './rate-limits.ts';
import { defaultBounds, type MemoryBounds, removeExpired, SharedState } from './shared-state.ts';
import { MemoryStorage, type MemoryTransaction } from './storage.ts';
import { memoryTriage } from './triage.ts';

/** The options of `memoryEngine`. All have defaults. */
export interface MemoryOptions {
  /** The clock for due times, leases and expiry. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers for ids. Default: the system's. */
  readonly random?: Random | undefined;
  /** The storage of another memory engine, to share its data. Default: a new one. */
  readonly storage?: MemoryStorage | undefined;
  /** The largest events and batches. Default: those of `SizeLimits`. */
  readonly limits?: SizeLimits | undefined;
  /**
   * Called before each write. If it throws, the write does not happen. Tests use it to simulate crashes. Default: none.
   */
  readonly beforeWrite?: (() => void) | undefined;
  /** The most unsettled events of all topics together. Default: `100000`. */
  readonly eventsMax?: number | undefined;
  /** The most settled events that each topic keeps. Default: `100000`. */
  readonly settledMax?: number | undefined;
  /** The most idempotency keys. Default: `100000`. */
  readonly keysMax?: number | undefined;
  /** The most records of handled events. Default: `1000000`. */
  readonly marksMax?: number | undefined;
  /** The most parked events. Default: `100000`. */
  readonly parkedMax?: number | undefined;
  /** The most entries of the audit log. Default: `10000`. */
  readonly auditMax?: number | undefined;
  /** The most rate-limit keys that are in use. Default: `100000`. */
  readonly rateLimitsMax?: number | undefined;
  /**
   * How long the record that an event was handled is kept, in ms. It must be longer than all retries plus
   * `keepParkedMs`; otherwise a replayed event may be handled twice. Default: `5184000000` (60 days).
   */
  readonly keepMarksMs?: number | undefined;
  /** How long parked events are kept, in ms. Default: `2592000000` (30 days). */
  readonly keepParkedMs?: number | undefined;
}

const known: Readonly<Record<keyof MemoryOptions, unknown>> = {
  clock: true,
  random: true,
  storage: true,
  limits: true,
  beforeWrite: true,
  ...defaultBounds,
};

/** An engine with every contract, in the memory of this process. The data is lost when the process ends. */
export type MemoryEngine = Required<Engine<MemoryTransaction>>;

/** The features of the memory engine: all except that data survives the end of the process. */
export const memoryFeatures: Features = {
  arrivalOrder: true,
  ordering: true,
  parkedHoldsKey: true,
  anyDelay: true,
  publishOnce: true,
  atomicPublish: true,
  portableLeases: true,
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

/** Creates an engine that keeps all data in memory, for tests and for the simulator. */
export function memoryEngine(options: MemoryOptions = {}): MemoryEngine {
  assertKnownFields(known, options);
  const { clock = systemClock, random = systemRandom, storage = new MemoryStorage() } = options;
  const { limits = defaultSizeLimits, beforeWrite = () => {} } = options;
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const bounds: MemoryBounds = { ...defaultBounds, ...Object.fromEntries(given) };
  const shared = new SharedState(storage, clock, random, bounds, limits, beforeWrite);

  const broker = memoryBroker(shared);
  const journal = memoryJournal(shared, storage.journal);

  return {
    name: 'memory',
    durability: 'none',
    features: memoryFeatures,
    broker,
    ledger: memoryLedger(shared),
    triage: memoryTriage(shared),
    rateLimits: memoryRateLimits(shared),
    journal,
    controls: broker.controls,
    audit: memoryAudit(shared),
    presence: memoryPresence(shared),

    async sweep(limit) {
      return shared.write((now) => {
        const removed = sweep(shared, now, limit);
        return removed + journal.sweep(limit - removed);
      });
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
  left -= forgetProcesses(shared, now, left);
  // Keep an expired event that belongs to a replay: the replay has not counted its result yet.
  const removable = ({ operation, removedAt }: { operation: string | undefined; removedAt: number }) =>
    operation === undefined ? removedAt : Infinity;
  const removed = removeExpired(storage.parked, removable, now, left);
  for (const id of removed) storage.changes.delete(id);
  if (removed.length > 0) {
    writeAudit(shared, {
      ...{ who: 'retention', why: 'their retention time is over', what: 'retention' },
      subjects: removed.map((id) => subject('event', id)),
    });
  }
  return limit - left + removed.length;
}
