import type { AttemptRecord } from './attempt-record.ts';
import type { Act } from './controls.ts';
import type { Payload } from './envelope.ts';
import type { ErrorNote } from './error-note.ts';
import type { Page, PageRequest } from './page.ts';
import type { SizeLimits } from './size-limits.ts';

/**
 * Stores assemblies. An assembly is work in several steps, and each finished step is recorded.
 * `@holdfast/assembly` decides which step runs next; the engine only stores the records and checks the
 * leases.
 *
 * Durations are given in ms from now. Times are returned as epoch ms by the store's clock. So a wrong clock
 * of a worker does no harm.
 */
export interface Journal<Tx = unknown> {
  readonly limits: SizeLimits;

  /** Returns the store's time, epoch ms. Schedules use this time. */
  now(): Promise<number>;

  /**
   * Writes starts and progress of many assemblies. Each entry is written as a whole or not at all. Returns
   * one result per entry. If the call rejects, repeat it: an applied start returns `repeated`, and progress
   * that ended its lease returns `lease_lost`.
   */
  record(entries: readonly JournalEntry<Tx>[]): Promise<readonly RecordResult[]>;

  /**
   * Starts assemblies (work in several steps) within the caller's transaction: they exist only if it commits.
   * If the engine's transactions are synchronous, the assemblies are written when the call returns.
   */
  startWithin(
    tx: Tx,
    starts: readonly NewAssembly[],
  ): readonly StartResult[] | Promise<readonly StartResult[]>;

  /**
   * Leases at most `limit` due assemblies to a worker, the longest due first, and extends the worker's lease.
   * If the lease of another worker has ended, its assemblies are due again, with one more in `deaths`. If
   * nothing is due, the call returns at once.
   */
  claim(request: ClaimRequest): Promise<Claimed>;

  /** Extends the lease of a worker. A worker has one lease for all its assemblies (work in several steps). */
  heartbeat(worker: string, leaseMs: number): Promise<Heartbeat>;

  /**
   * Ends the lease of a worker, and returns how many assemblies it had. They are due at once, and their
   * `deaths` does not change.
   */
  release(worker: string): Promise<number>;

  /**
   * Stores signals. An assembly (work in several steps) that may wait for the signal becomes due. The `act` of
   * an accepted signal is written to the audit log.
   */
  signal(signals: readonly NewSignal[]): Promise<readonly SignalResult[]>;

  /**
   * Asks assemblies to stop and to compensate (undo) their finished steps, also if they wait, are parked or
   * are done. Only the first request for an assembly is stored. If it names a person (`stop.who`), it is
   * written to the audit log.
   */
  requestStop(requests: readonly StopRequest[]): Promise<readonly StopResult[]>;

  /**
   * Sets the deadline of an assembly to `patienceMs` from now. Returns false if the assembly is unknown or
   * has ended.
   */
  setPatience(id: string, patienceMs: number): Promise<boolean>;

  /**
   * Changes an assembly that is not leased, as `AssemblyChange` describes. `act` is added to the assembly's
   * `acts` and to the audit log.
   */
  change(id: string, change: AssemblyChange, act: Act): Promise<ChangeResult>;

  /**
   * Starts a copy of the assembly `id`, with its signals and the finished step records in `keep`. `fork` may
   * replace the version and the input. `act` is added to the `acts` of the copy and to the audit log.
   */
  fork(id: string, fork: Fork, act: Act): Promise<'forked' | 'unknown' | 'repeated'>;

  /** Reads assemblies (work in several steps); `undefined` for an id that does not exist. */
  get(ids: readonly string[]): Promise<readonly (StoredAssembly | undefined)[]>;
  /** Lists the step records of an assembly, sorted by `order`. */
  steps(id: string, page: PageRequest): Promise<Page<StoredStep>>;
  /** Returns the signals of an assembly whose `number` is above `after`, in the order of arrival. */
  signals(id: string, after?: number): Promise<readonly StoredSignal[]>;
  /** Lists assemblies (work in several steps), the last started first. */
  list(filter: AssemblyFilter, page: PageRequest): Promise<Page<StoredAssembly>>;
  counts(): Promise<readonly ProgramCounts[]>;
  /**
   * Groups parked assemblies (those that wait for an operator) by program, reason and error. Returns at most
   * `limit` groups, the largest first.
   */
  parkedGroups(limit: number): Promise<readonly AssemblyGroup[]>;

  /** Sets the limits of a queue for all workers together. A limit that is not given is removed. */
  setQueue(name: string, limits: QueueLimits): Promise<void>;
  queues(): Promise<readonly QueueState[]>;

  /**
   * Calls `ring` when an assembly (work in several steps) may have become due, or a signal or stop request
   * has arrived. The returned function unsubscribes.
   */
  doorbell(ring: () => void): () => void;

  /** Calls `ring` when the assembly `id` may have changed. The returned function unsubscribes. */
  watch(id: string, ring: () => void): () => void;
}

/** An assembly (work in several steps) to be started. */
export interface NewAssembly {
  /**
   * The id of the assembly. If it exists already, the start returns `repeated`, or `mismatch` if the name or
   * the input differs.
   */
  readonly id: string;
  readonly name: string;
  /** The version of the program. Only workers that have this version lease the assembly. */
  readonly version: number;
  readonly input: Payload;
  /** How many ms from the start the result is useful; no limit by default. */
  readonly patienceMs?: number;
  /** The assembly becomes due this many ms after the start; at once by default. */
  readonly dueInMs?: number;
  /** The queue whose limits apply; no queue by default. */
  readonly queue?: string;
  /** `concurrencyByKey` and `rateByKey` of the queue apply to all assemblies with the same key together. */
  readonly key?: string;
  readonly tenant?: string;
  /** Settings that only `@holdfast/assembly` reads. The engine stores the text unchanged. */
  readonly settings?: string;
  /** How many ms the assembly is kept after its end; 30 days by default. */
  readonly keepMs?: number;
}

/** One entry of a batch: the start of an assembly (work in several steps), or its progress. */
export type JournalEntry<Tx = unknown> = StartEntry | ProgressEntry<Tx>;

/**
 * The start of an assembly (work in several steps). With `worker`, the assembly may be leased to that worker
 * at once.
 */
export interface StartEntry {
  readonly kind: 'start';
  readonly start: NewAssembly;
  /**
   * The worker that wants to run the assembly. It gets the assembly at once if it is due and has no queue.
   */
  readonly worker?: WorkerLease;
}

/**
 * A worker, and the length of its lease. If the worker does not extend the lease in time, other workers get
 * its assemblies (work in several steps).
 */
export interface WorkerLease {
  /** The name of the worker. It is different for each start of the process. */
  readonly name: string;
  readonly leaseMs: number;
}

/** The progress of an assembly (work in several steps) that the worker has leased. */
export interface ProgressEntry<Tx = unknown> {
  readonly kind: 'progress';
  readonly lease: AssemblyLease;
  /** Step records to store. A record replaces the stored record with the same path. */
  readonly steps: readonly StepRecord[];
  /** Runs a step in the transaction that stores this entry. If it throws, nothing of this entry is stored. */
  readonly transaction?: StepTransaction<Tx>;
  /** Assemblies that are started in the same transaction. An assembly that already exists stays unchanged. */
  readonly starts?: readonly NewAssembly[];
  /** Signals to other assemblies that are stored in the same transaction. */
  readonly signals?: readonly NewSignal[];
  /**
   * True: `deaths` (the number of workers that died with the assembly) is set to 0, because the assembly has
   * made progress.
   */
  readonly clearDeaths?: boolean;
  /** True: from now on, stop requests are refused with the result `committed`. */
  readonly commits?: boolean;
  /** Given when the assembly begins to compensate (undo its finished steps): the reason. */
  readonly stop?: StopNote;
  /** What happens to the assembly next. By default, the worker keeps the lease. */
  readonly next?: Next;
}

/** A step whose effect and record are committed in one transaction. */
export interface StepTransaction<Tx = unknown> {
  /** The step record. The engine adds the result of `run` to it. */
  readonly step: StepRecord;
  /** Executes the step. It must be synchronous if the engine's transactions are synchronous. */
  run(tx: Tx): Payload | undefined | Promise<Payload | undefined>;
}

/** What happens to an assembly (work in several steps) after its progress is stored. */
export type Next =
  /**
   * Without `dueInMs`, the assembly waits for a change, such as a signal. With `dueInMs`, it waits at most
   * this long. If a change arrived after `revision` was read, the assembly is due at once.
   */
  | { readonly kind: 'suspend'; readonly dueInMs?: number; readonly revision: number }
  /** The worker ends the lease. The assembly is due at once. */
  | { readonly kind: 'return' }
  /**
   * The assembly has ended with this result. If a stop was requested meanwhile, the assembly is due at once,
   * to compensate (undo its steps).
   */
  | { readonly kind: 'done'; readonly result: Payload | undefined }
  /** The assembly has compensated (undone) all its finished steps. */
  | { readonly kind: 'stopped' }
  /**
   * The assembly is parked: it waits for an operator. After `dueInMs`, when its deadline passes, it is due
   * again.
   */
  | {
      readonly kind: 'park';
      readonly parked: ParkNote;
      readonly dueInMs?: number;
      readonly revision: number;
    };

/** Why an assembly stops and compensates (undoes) its finished steps. */
export interface StopNote {
  /** A stop reason of `holdfast`, such as `cancelled` or `patience_too_short`. */
  readonly because: string;
  /** A sentence for people. */
  readonly message: string;
  /** The person or program that requested the stop. */
  readonly who?: string;
}

/** Why an assembly (work in several steps) is parked: it waits for an operator. */
export interface ParkNote {
  readonly because: string;
  readonly message: string;
  /**
   * The paths of the steps that get no more retries. Their records are removed when the assembly is resumed.
   */
  readonly paths: readonly string[];
  readonly error?: ErrorNote;
}

/** The kinds of steps that are recorded. */
export type StepKind = 'run' | 'transaction' | 'sleep' | 'wait' | 'child' | 'change' | 'undo';

/**
 * `done` and `failed` are final. `begun`: an attempt was started and may have had an effect. `retrying`: the
 * next attempt is due later. `waiting`: a sleep, or a wait for a signal or a child assembly.
 */
export type StepState = 'done' | 'failed' | 'begun' | 'retrying' | 'waiting';

/** The record of one step. The engine reads only `path`, `order`, `state` and `dueInMs`. */
export interface StepRecord {
  /**
   * The name of the step, after the names of the scopes around it, such as `prepare/label/print`. A repeated
   * name gets a number: `charge#2`.
   */
  readonly path: string;
  readonly kind: StepKind;
  readonly state: StepState;
  /**
   * The number of this record in the assembly, counted from 1. A replayed program gets the step results in
   * this order.
   */
  readonly order: number;
  readonly attempts: number;
  /** When the record was made, epoch ms. The worker estimates the store's clock for it. */
  readonly at: number;
  /** When the step continues, in ms from now. The engine stores the resulting time as `dueAt`. */
  readonly dueInMs?: number | undefined;
  readonly result?: Payload | undefined;
  readonly error?: ErrorNote | undefined;
  /** For a failed step: the stop reason. For a waiting step: a description of what it waits for. */
  readonly because?: string | undefined;
  readonly story?: readonly AttemptRecord[] | undefined;
  /** The number of the signal that this wait has consumed. */
  readonly signal?: number | undefined;
}

/** A stored step record. */
export interface StoredStep extends Omit<StepRecord, 'dueInMs'> {
  /** Epoch ms by the store's clock. */
  readonly dueAt?: number | undefined;
}

/**
 * The right to record the progress of one assembly (work in several steps). It becomes invalid when the
 * assembly is leased again.
 */
export interface AssemblyLease {
  readonly id: string;
  readonly token: string;
}

/** The result of one entry of a batch. */
export type RecordResult = StartResult | ProgressResult;

/**
 * The result of starting an assembly. `repeated`: the assembly exists already. `mismatch`: it exists with
 * another input or program.
 */
export type StartResult =
  /** `lease` is given if the engine leased the assembly to `worker`. */
  | { readonly kind: 'accepted'; readonly lease?: AssemblyLease; readonly at: number }
  | { readonly kind: 'repeated' }
  | { readonly kind: 'mismatch' };

/**
 * The result of recording progress. `lease_lost`: nothing was stored, because another worker may have the
 * assembly.
 */
export type ProgressResult =
  | {
      readonly kind: 'took';
      /**
       * The stored revision before this entry. If the worker knows only a lower revision, a signal, a stop
       * request or another change has arrived.
       */
      readonly revision: number;
      /** The result of `transaction`. */
      readonly result?: Payload | undefined;
    }
  | { readonly kind: 'lease_lost' }
  /** `transaction` threw `error`. Nothing was stored. */
  | { readonly kind: 'commit_failed'; readonly error: unknown };

/**
 * A worker's request for assemblies (work in several steps) to lease. The worker gets only assemblies of
 * `programs`.
 */
export interface ClaimRequest {
  /** The name of the worker. It is different for each start of the process. */
  readonly worker: string;
  readonly leaseMs: number;
  readonly limit: number;
  /** The programs and versions that the worker can run. */
  readonly programs: readonly ProgramVersion[];
  /**
   * An assembly with this many `deaths` (workers that died with it) is a suspect: it may crash its worker. It
   * is leased only with `suspects: true`. By default, no assembly is a suspect.
   */
  readonly suspectDeaths?: number;
  /**
   * True: leases at most one suspect (an assembly that may crash its worker) and no other assembly. Use it
   * only while the process runs nothing else.
   */
  readonly suspects?: boolean;
}

/**
 * One version of a program. An assembly (one run of a program) keeps the version with which it was started.
 */
export interface ProgramVersion {
  readonly name: string;
  readonly version: number;
}

/** The result of a claim. */
export interface Claimed {
  readonly assemblies: readonly ClaimedAssembly[];
  /** How many due assemblies are suspects (they may crash their worker). An engine may stop counting at 1. */
  readonly suspects: number;
  /**
   * The ms until the next assembly is due, or until another worker's lease ends; `undefined`: there is
   * neither. Valid only if fewer than `limit` assemblies were leased.
   */
  readonly nextDueInMs: number | undefined;
  /** The store's time, epoch ms. */
  readonly now: number;
}

/** A leased assembly (work in several steps) with all its step records and signals. */
export interface ClaimedAssembly extends StoredAssembly {
  readonly lease: AssemblyLease;
  readonly steps: readonly StoredStep[];
  readonly signals: readonly StoredSignal[];
}

/** The result of a heartbeat. */
export interface Heartbeat {
  /** False: the worker's lease had ended before this heartbeat. Other workers may have got its assemblies. */
  readonly alive: boolean;
  /** The ids of all assemblies that the worker has now. */
  readonly leased: readonly string[];
  /**
   * The leased assemblies that have received a signal, a stop request or another change, with their revision.
   */
  readonly changed: readonly { readonly id: string; readonly revision: number }[];
}

/** A signal (a message to an assembly). It is stored until the assembly waits for it. */
export interface NewSignal {
  readonly to: string;
  /** The id of the signal. If the assembly already has a signal with this id, the new one is not stored. */
  readonly id: string;
  readonly name: string;
  readonly payload: Payload | undefined;
  /** The operator who sends the signal, and why, for the audit log. By default, the signal is not audited. */
  readonly act?: Act;
}

/**
 * A signal: a message that was sent to an assembly (work in several steps), and is kept until the assembly
 * reads it.
 */
export interface StoredSignal {
  /** The number of the signal in its assembly, in the order of arrival, counted from 1. */
  readonly number: number;
  readonly id: string;
  readonly name: string;
  readonly payload: Payload | undefined;
  /** Epoch ms by the store's clock. */
  readonly at: number;
}

/**
 * The result of sending a signal. `repeated`: the assembly has a signal with this id. `ended`: the assembly
 * has ended. `unknown`: there is no such assembly.
 */
export type SignalResult = 'accepted' | 'repeated' | 'ended' | 'unknown';

/** A request that an assembly (work in several steps) stops and compensates (undoes) its finished steps. */
export interface StopRequest {
  readonly id: string;
  readonly stop: StopNote;
}

/**
 * The result of a stop request. `already`: it has stopped, or was asked to stop before. `committed`: the
 * assembly must not be undone any more.
 */
export type StopResult = 'requested' | 'already' | 'committed' | 'unknown';

/** A change of an assembly (work in several steps) by a person. It is applied as a whole or not at all. */
export interface AssemblyChange {
  readonly input?: Payload;
  readonly version?: number;
  /** Replaces the settings that `@holdfast/assembly` reads. */
  readonly settings?: string;
  /**
   * Steps that are recorded as `done` with these results. A step that was not `done` gets the next `order`.
   */
  readonly put?: readonly { readonly path: string; readonly result: Payload | undefined }[];
  /** The paths of step records to remove, so that these steps run again. */
  readonly forget?: readonly string[];
  /** True: the assembly is due at once, and is not parked any more. */
  readonly resume?: boolean;
}

/**
 * The result of a change. `leased`: a worker has the assembly, so nothing was changed. `ended`: the assembly
 * is done or has stopped.
 */
export type ChangeResult = 'changed' | 'leased' | 'ended' | 'unknown';

/**
 * A new assembly (work in several steps) that starts with the step records of another one. Steps whose path
 * is not in `keep` run again.
 */
export interface Fork {
  readonly id: string;
  readonly keep: readonly string[];
  readonly version?: number;
  readonly input?: Payload;
}

/**
 * The states of an assembly. `waiting`: waits for a worker, a time or a signal. `running`: is leased.
 * `parked`: waits for an operator. `done`: has ended with a result. `stopped`: has ended after it undid its
 * finished steps.
 */
export const assemblyStates = ['waiting', 'running', 'parked', 'done', 'stopped'] as const;
/** The state of an assembly. See `assemblyStates`. */
export type AssemblyState = (typeof assemblyStates)[number];

/** A stored assembly (work in several steps), without its steps and signals. */
export interface StoredAssembly {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly state: AssemblyState;
  readonly input: Payload;
  readonly result: Payload | undefined;
  /** Why the assembly stops; `undefined`: it was not asked to stop and does not compensate. */
  readonly stop: StopNote | undefined;
  readonly parked: ParkNote | undefined;
  /** True: stop requests are refused. */
  readonly committed: boolean;
  /** When the assembly was started, epoch ms. All times of this interface use the store's clock. */
  readonly acceptedAt: number;
  /** The deadline: when the result is not useful any more. */
  readonly expiresAt: number | undefined;
  readonly endedAt: number | undefined;
  /**
   * When the assembly is due, epoch ms; `undefined`: it is leased, has ended, or waits without a time limit.
   */
  readonly dueAt: number | undefined;
  readonly queue: string | undefined;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly settings: string | undefined;
  /** Increases with every signal, stop request, new deadline and change by a person. */
  readonly revision: number;
  /** How many workers died while they had this assembly, counted since the assembly last made progress. */
  readonly deaths: number;
  /** The worker that has leased the assembly. */
  readonly worker: string | undefined;
  readonly acts: readonly ActNote[];
}

/** A change of one assembly by an operator: who, what, why and when (epoch ms). */
export interface ActNote extends Act {
  readonly at: number;
  readonly what: string;
}

/**
 * Selects assemblies (work in several steps). An assembly must match all given fields; without fields, all
 * match.
 */
export interface AssemblyFilter {
  readonly name?: string;
  readonly version?: number;
  readonly state?: AssemblyState;
  readonly queue?: string;
  readonly key?: string;
  readonly tenant?: string;
  /** Only parked assemblies whose error has this fingerprint. */
  readonly fingerprint?: string;
  /** True: only assemblies that have a `stop` reason. False: only assemblies without one. */
  readonly stopping?: boolean;
}

/**
 * How many assemblies (work in several steps) of a program version are in each state. Assemblies that have
 * ended count until the engine removes them.
 */
export type ProgramCounts = ProgramVersion & Readonly<Record<AssemblyState, number>>;

/**
 * Assemblies of one program that are parked (wait for an operator) for the same reason, with the same error.
 */
export interface AssemblyGroup {
  readonly name: string;
  readonly because: string;
  /** `undefined`: the assemblies were parked without an error. */
  readonly fingerprint: string | undefined;
  readonly count: number;
  /** The assembly of this group that was started last. `message` is from the same assembly. */
  readonly latestId: string;
  readonly message: string;
}

/**
 * How many assemblies (work in several steps) of a queue may run at the same time, and how many may start in
 * a period.
 */
export interface QueueLimits {
  /**
   * The most assemblies of the queue that are leased at the same time, in all workers together. Default: no
   * limit.
   */
  readonly concurrency?: number;
  /** The most leased assemblies of the queue for each key, in all workers together. Default: no limit. */
  readonly concurrencyByKey?: number;
  /**
   * How many assemblies of the queue start per time; one that continues after a wait is not counted again.
   * Default: no limit.
   */
  readonly rate?: QueueRate;
  /** How many assemblies of the queue start per time, for each key. Default: no limit. */
  readonly rateByKey?: QueueRate;
}

/** At most `count` assemblies start per `perMs` ms. */
export interface QueueRate {
  readonly count: number;
  readonly perMs: number;
}

/**
 * A queue, with its limits, and with how many of its assemblies (work in several steps) are leased and how
 * many wait.
 */
export interface QueueState {
  readonly name: string;
  readonly limits: QueueLimits;
  readonly leased: number;
  /** How many assemblies wait. Assemblies that are due later are included. */
  readonly waiting: number;
}
