import type {
  ActNote,
  AssemblyState,
  NewAssembly,
  ParkNote,
  QueueLimits,
  StopNote,
  StoredAssembly,
  StoredSignal,
  StoredStep,
} from '../journal.ts';

const dayMs = 24 * 60 * 60 * 1000;

export class AssemblyRow {
  readonly start: NewAssembly;
  readonly order: number;
  readonly acceptedAt: number;
  readonly keepMs: number;
  readonly steps = new Map<string, StoredStep>();
  readonly signals: StoredSignal[] = [];
  readonly acts: ActNote[] = [];
  version: number;
  input: NewAssembly['input'];
  settings: string | undefined;
  state: AssemblyState = 'waiting';
  result: StoredAssembly['result'];
  stop: StopNote | undefined;
  parked: ParkNote | undefined;
  committed = false;
  expiresAt: number;
  endedAt: number | undefined;
  /**
   * When the assembly (work in several steps) is due, epoch ms. Infinity: only a signal, a stop request or an
   * operator makes it due.
   */
  dueAt: number;
  revision = 0;
  deaths = 0;
  lease: { readonly token: string; readonly worker: string } | undefined;
  /** True: the assembly (work in several steps) was already counted against the rate limit of its queue. */
  isCharged = false;

  constructor(start: NewAssembly, order: number, now: number) {
    this.start = start;
    this.order = order;
    this.acceptedAt = now;
    this.keepMs = start.keepMs ?? 30 * dayMs;
    this.version = start.version;
    this.input = start.input;
    this.settings = start.settings;
    this.expiresAt = now + (start.patienceMs ?? Infinity);
    this.dueAt = now + (start.dueInMs ?? 0);
  }

  get hasEnded(): boolean {
    return this.state === 'done' || this.state === 'stopped';
  }

  get removedAt(): number {
    return this.endedAt === undefined ? Infinity : this.endedAt + this.keepMs;
  }

  isDue(now: number): boolean {
    return (this.state === 'waiting' || this.state === 'parked') && this.dueAt <= now;
  }

  toStored(): StoredAssembly {
    const { id, name, queue, key, tenant } = this.start;
    const isQueued = this.state === 'waiting' || this.state === 'parked';
    return {
      ...{ id, name, version: this.version, state: this.state, input: this.input, result: this.result },
      ...{ stop: this.stop, parked: this.parked, committed: this.committed, acceptedAt: this.acceptedAt },
      expiresAt: finite(this.expiresAt),
      endedAt: this.endedAt,
      dueAt: isQueued ? finite(this.dueAt) : undefined,
      ...{ queue, key, tenant, settings: this.settings, revision: this.revision, deaths: this.deaths },
      worker: this.lease?.worker,
      acts: [...this.acts],
    };
  }
}

/**
 * The assemblies (work in several steps) of a memory engine. Several engines can share one storage, like
 * processes that share a database.
 */
export class JournalStorage {
  readonly rows = new Map<string, AssemblyRow>();
  /** When the lease of each worker ends, epoch ms, by worker name. */
  readonly workers = new Map<string, number>();
  readonly queues = new Map<string, QueueLimits>();
  /** The theoretical arrival times of the rate limiters (GCRA algorithm), by queue, or by queue and key. */
  readonly tats = new Map<string, number>();
  readonly doorbells = new Set<() => void>();
  readonly watches = new Map<string, Set<() => void>>();

  ringDoorbells(): void {
    // A listener may call the journal, so call it in a microtask, when the current change is complete.
    for (const ring of this.doorbells) queueMicrotask(ring);
  }

  ringWatches(id: string): void {
    for (const ring of this.watches.get(id) ?? []) queueMicrotask(ring);
  }
}

function finite(at: number): number | undefined {
  return at < Infinity ? at : undefined;
}
