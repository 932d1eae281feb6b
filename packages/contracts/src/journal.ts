import type { AttemptRecord } from './attempt-record.ts';
import type { Act } from './controls.ts';
import type { Payload } from './envelope.ts';
import type { ErrorNote } from './error-note.ts';
import type { Page, PageRequest } from './page.ts';
import type { SizeLimits } from './size-limits.ts';

/**
 * Stores assemblies: work of several steps, of which each finished step is on record. The engine stores and fences; which
 * step runs next, and whether a failed one is tried again, is decided by `@holdfast/assembly`.
 *
 * Durations are given in ms from now, and times are returned as epoch ms by the store's clock: workers with wrong clocks
 * do no harm.
 */
export interface Journal<Tx = unknown> {
  readonly limits: SizeLimits;

  /** The store's time, epoch ms. Schedules are kept by it. */
  now(): Promise<number>;

  /**
   * Writes starts and progress of many assemblies, and resolves when all of it is durable. Returns one result per entry,
   * in the same order; an entry is applied as a whole or not at all. If the call rejects, repeat it: a start that was
   * applied before returns `repeated`. Progress that was applied before is written once more with the same content, or
   * returns `lease_lost` if it gave up the lease.
   */
  record(entries: readonly JournalEntry<Tx>[]): Promise<readonly RecordResult[]>;

  /**
   * Starts assemblies within a transaction of the caller. If the engine's transactions are synchronous, the assemblies
   * are written when this function returns.
   */
  startWithin(
    tx: Tx,
    starts: readonly NewAssembly[],
  ): readonly StartResult[] | Promise<readonly StartResult[]>;

  /**
   * Leases at most `limit` due assemblies to a worker, the longest due first, and renews the worker's lease. Assemblies
   * of workers whose lease has ended are due again, each with one death more. Does not wait.
   */
  claim(request: ClaimRequest): Promise<Claimed>;

  /** Extends the lease of a worker, which covers all assemblies that it has. */
  heartbeat(worker: string, leaseMs: number): Promise<Heartbeat>;

  /** Gives back all assemblies of a worker, without counting a death. Returns how many. */
  release(worker: string): Promise<number>;

  /** Stores signals and makes the assemblies due that may wait for them. */
  signal(signals: readonly NewSignal[]): Promise<readonly SignalResult[]>;

  /**
   * Asks assemblies to stop and to compensate what they have done: also those that wait, are parked or are done. The
   * first request counts.
   */
  requestStop(requests: readonly StopRequest[]): Promise<readonly StopResult[]>;

  /** Sets the patience of an assembly to `patienceMs` from now. False: there is none with this id, or it has ended. */
  setPatience(id: string, patienceMs: number): Promise<boolean>;

  /** Changes an assembly that no worker has; see `AssemblyChange`. The act is kept in the assembly's `acts`. */
  change(id: string, change: AssemblyChange, act: Act): Promise<ChangeResult>;

  /**
   * Starts a new assembly as a copy: the same program, input and settings, and the settled records of the steps in
   * `keep`. Signals are copied as well.
   */
  fork(id: string, fork: Fork, act: Act): Promise<'forked' | 'unknown' | 'repeated'>;

  /** Reads assemblies. The result has `undefined` for an id that does not exist. */
  get(ids: readonly string[]): Promise<readonly (StoredAssembly | undefined)[]>;
  /** Lists the step records of an assembly by `order`. */
  steps(id: string, page: PageRequest): Promise<Page<StoredStep>>;
  /** Returns the signals of an assembly with a number above `after`, in the order of arrival. */
  signals(id: string, after?: number): Promise<readonly StoredSignal[]>;
  /** Lists assemblies; those that were accepted last come first. */
  list(filter: AssemblyFilter, page: PageRequest): Promise<Page<StoredAssembly>>;
  counts(): Promise<readonly ProgramCounts[]>;
  /** Groups parked assemblies by program, reason and error. At most `limit` groups, the largest first. */
  parkedGroups(limit: number): Promise<readonly AssemblyGroup[]>;

  /** Sets the limits of a queue in all workers. A limit that is not given is removed. */
  setQueue(name: string, limits: QueueLimits): Promise<void>;
  queues(): Promise<readonly QueueState[]>;

  /**
   * Calls `ring` when an assembly may have become due, or when something came from outside (a signal, a request to stop).
   * Returns a function that unsubscribes `ring`.
   */
  doorbell(ring: () => void): () => void;

  /** Calls `ring` when an assembly may have changed. Returns a function that unsubscribes `ring`. */
  watch(id: string, ring: () => void): () => void;
}

/** An assembly to be started. */
export interface NewAssembly {
  /** A start with the id of another assembly returns `repeated`, or `mismatch` if its name or input differs. */
  readonly id: string;
  /** The name of the program. */
  readonly name: string;
  /** The version of the program. Only workers that have this version lease the assembly. */
  readonly version: number;
  readonly input: Payload;
  /** How long the customer waits for the end, counted from the start; without limit unless given. */
  readonly patienceMs?: number;
  /** The assembly is due this long after the start; at once unless given. */
  readonly dueInMs?: number;
  /** The queue whose limits apply; none unless given. */
  readonly queue?: string;
  /** Limits of the queue that are given by key apply to assemblies with the same key. */
  readonly key?: string;
  readonly tenant?: string;
  /** Settings that only the runtime reads. The engine stores the text unchanged. */
  readonly settings?: string;
  /** How long the assembly is kept after its end; 30 days unless given. */
  readonly keepMs?: number;
}

/** One entry of a batch: an assembly that starts, or progress of one. */
export type JournalEntry<Tx = unknown> = StartEntry | ProgressEntry<Tx>;

/** An assembly to start. With `worker`, that worker has it leased at once. */
export interface StartEntry {
  readonly kind: 'start';
  readonly start: NewAssembly;
  /**
   * The worker that runs the assembly at once. If the assembly is due and has no queue, the engine leases it to this
   * worker, and extends the worker's lease if it has ended.
   */
  readonly worker?: WorkerLease;
}

/** A worker by its name, and how long it may be silent, in ms, before others take over. */
export interface WorkerLease {
  /** The name of the worker, which is different for each start of the process. */
  readonly name: string;
  readonly leaseMs: number;
}

/** What a worker has to say about an assembly that it has leased. */
export interface ProgressEntry<Tx = unknown> {
  readonly kind: 'progress';
  readonly lease: AssemblyLease;
  /** New records, or records that replace the one with the same path. */
  readonly steps: readonly StepRecord[];
  /** Runs a step within the transaction of this entry. If it throws, nothing of this entry is written. */
  readonly transaction?: StepTransaction<Tx>;
  /** Assemblies that are started in the same write. One that exists already is left as it is. */
  readonly starts?: readonly NewAssembly[];
  /** Signals to other assemblies in the same write. */
  readonly signals?: readonly NewSignal[];
  /** True: the deaths that were counted so far are forgotten, because the assembly has made progress. */
  readonly clearDeaths?: boolean;
  /** True: from now on a request to stop is refused. */
  readonly commits?: boolean;
  /** The assembly begins to compensate for this reason. */
  readonly stop?: StopNote;
  /** What becomes of the lease; the worker keeps it unless given. */
  readonly next?: Next;
}

/** A step whose effect is committed together with its record, or not at all. */
export interface StepTransaction<Tx = unknown> {
  /** The record that is written with the result of `run`. */
  readonly step: StepRecord;
  /** Must be synchronous if the engine's transactions are. */
  run(tx: Tx): Payload | undefined | Promise<Payload | undefined>;
}

/** What becomes of an assembly after its progress was recorded. */
export type Next =
  /**
   * Nothing is to be done for `dueInMs`, or until something comes from outside if it is not given. If something has come
   * since `revision`, the assembly is due at once: a signal is never slept over.
   */
  | { readonly kind: 'suspend'; readonly dueInMs?: number; readonly revision: number }
  /** The worker gives the assembly back as it is. */
  | { readonly kind: 'return' }
  /** It has ended with this result. If it was asked to stop meanwhile, it is due at once, to compensate. */
  | { readonly kind: 'done'; readonly result: Payload | undefined }
  /** It has compensated everything. */
  | { readonly kind: 'stopped' }
  /** People must look at it. It is due again after `dueInMs`, when the customer's patience ends. */
  | {
      readonly kind: 'park';
      readonly parked: ParkNote;
      readonly dueInMs?: number;
      readonly revision: number;
    };

/** Why an assembly stops, and compensates what was done. */
export interface StopNote {
  /** A stop reason of `holdfast`, such as `cancelled` or `patience_too_short`. */
  readonly because: string;
  /** A sentence for people. */
  readonly message: string;
  /** The person or program that asked for it. */
  readonly who?: string;
}

/** Why an assembly waits for people. */
export interface ParkNote {
  readonly because: string;
  readonly message: string;
  /** The steps that were given up on. Their records are forgotten on resume. */
  readonly paths: readonly string[];
  readonly error?: ErrorNote;
}

/** The kinds of steps that are recorded. */
export type StepKind = 'run' | 'transaction' | 'sleep' | 'wait' | 'child' | 'change' | 'undo';

/**
 * `done` and `failed` are settled. `begun`: an attempt may have been made, and must not be repeated blindly. `retrying`:
 * an attempt has failed, and the next one is due later. `waiting`: a sleep, or a wait for a signal or a child.
 */
export type StepState = 'done' | 'failed' | 'begun' | 'retrying' | 'waiting';

/** What is on record about a step. The engine stores it without reading it, except `path`, `order` and `dueInMs`. */
export interface StepRecord {
  /** The name of the step within its scopes, with its occurrence: `charge`, `charge#2`, `prepare/label/print`. */
  readonly path: string;
  readonly kind: StepKind;
  readonly state: StepState;
  /**
   * The number of this record in the assembly, counted from 1. Results are given to the program in this order, so that
   * each run of the program sees them in the same order.
   */
  readonly order: number;
  readonly attempts: number;
  /** When it was recorded, epoch ms by the store's clock as far as the worker knows it. */
  readonly at: number;
  /** When the step goes on, ms from now. The engine stores the time. */
  readonly dueInMs?: number | undefined;
  readonly result?: Payload | undefined;
  readonly error?: ErrorNote | undefined;
  /** Why a step failed: a stop reason. Or what a wait waits for, in words. */
  readonly because?: string | undefined;
  readonly story?: readonly AttemptRecord[] | undefined;
  /** The number of the signal that a wait has taken. */
  readonly signal?: number | undefined;
}

/** A step as it is stored. */
export interface StoredStep extends Omit<StepRecord, 'dueInMs'> {
  /** Epoch ms by the store's clock. */
  readonly dueAt?: number | undefined;
}

/** The right to record the progress of one assembly. A later lease makes it invalid. */
export interface AssemblyLease {
  readonly id: string;
  readonly token: string;
}

/** What became of one entry of a batch. */
export type RecordResult = StartResult | ProgressResult;

/** What became of a start. `mismatch`: another assembly has this id, with another input or program. */
export type StartResult =
  /** `lease` is given if the assembly was leased to `worker`. */
  | { readonly kind: 'accepted'; readonly lease?: AssemblyLease; readonly at: number }
  | { readonly kind: 'repeated' }
  | { readonly kind: 'mismatch' };

/** What became of recorded progress. After `lease_lost` nothing of it was stored. */
export type ProgressResult =
  | {
      readonly kind: 'took';
      /** The revision before this entry: above the one that the worker knows, something has come from outside. */
      readonly revision: number;
      /** The result of `transaction`. */
      readonly result?: Payload | undefined;
    }
  | { readonly kind: 'lease_lost' }
  /** `transaction` has thrown `error`. */
  | { readonly kind: 'commit_failed'; readonly error: unknown };

/** What a worker asks for: only programs that it has, in versions that it has. */
export interface ClaimRequest {
  /** The name of the worker, which is different for each start of the process. */
  readonly worker: string;
  readonly leaseMs: number;
  readonly limit: number;
  /** The programs that the worker has. */
  readonly programs: readonly ProgramVersion[];
  /** Assemblies with this many deaths or more are suspects, and are leased only on request; no limit unless given. */
  readonly suspectDeaths?: number;
  /** True: leases one suspect, or nothing. Use it only while the process runs nothing else. */
  readonly suspects?: boolean;
}

/** A program in one version. An assembly keeps the version that it was started with. */
export interface ProgramVersion {
  readonly name: string;
  readonly version: number;
}

/** What a claim brought: assemblies that are due, and how long until the next one is. */
export interface Claimed {
  readonly assemblies: readonly ClaimedAssembly[];
  /** How many due assemblies are suspects. An engine may stop counting at 1. */
  readonly suspects: number;
  /**
   * The time until the next assembly is due, or until the lease of another worker that has some would end; `undefined`:
   * neither. Only valid if fewer than `limit` were leased.
   */
  readonly nextDueInMs: number | undefined;
  /** The store's time, epoch ms. */
  readonly now: number;
}

/** An assembly with its whole record, leased to one worker. */
export interface ClaimedAssembly extends StoredAssembly {
  readonly lease: AssemblyLease;
  readonly steps: readonly StoredStep[];
  readonly signals: readonly StoredSignal[];
}

/** The answer to a worker that says that it is alive. */
export interface Heartbeat {
  /** False: the worker's lease had ended. It holds only what `leased` names. */
  readonly alive: boolean;
  /** The ids of all assemblies that the worker has. */
  readonly leased: readonly string[];
  /** Of these, the ones to which something has come from outside, with their revision. */
  readonly changed: readonly { readonly id: string; readonly revision: number }[];
}

/** A signal to send. It is kept until the assembly waits for it. */
export interface NewSignal {
  /** The id of the assembly. */
  readonly to: string;
  /** A signal with the id of an earlier one to the same assembly is not stored again. */
  readonly id: string;
  readonly name: string;
  readonly payload: Payload | undefined;
}

/** A signal as it is stored. `number` counts the signals of one assembly in the order in which they came. */
export interface StoredSignal {
  /** Counted from 1 in each assembly. */
  readonly number: number;
  readonly id: string;
  readonly name: string;
  readonly payload: Payload | undefined;
  /** Epoch ms by the store's clock. */
  readonly at: number;
}

/** What became of a signal. `repeated`: one with its id had come before. `ended`: the assembly takes none any more. */
export type SignalResult = 'accepted' | 'repeated' | 'ended' | 'unknown';

/** Asks an assembly to stop and compensate. */
export interface StopRequest {
  readonly id: string;
  readonly stop: StopNote;
}

/** `already`: it has stopped, or was asked to stop before. `committed`: it must not be compensated any more. */
export type StopResult = 'requested' | 'already' | 'committed' | 'unknown';

/** A change by a person. All of it is written, or nothing. */
export interface AssemblyChange {
  readonly input?: Payload;
  readonly version?: number;
  /** Replaces the settings of the runtime. */
  readonly settings?: string;
  /** Steps that count as done with these results. A step without a settled record gets the next `order`. */
  readonly put?: readonly { readonly path: string; readonly result: Payload | undefined }[];
  /** Paths of records to be removed, so that these steps run again. */
  readonly forget?: readonly string[];
  /** True: a parked assembly is due at once. */
  readonly resume?: boolean;
}

/** `leased`: a worker has it; try again later. `ended`: it is done or has stopped. */
export type ChangeResult = 'changed' | 'leased' | 'ended' | 'unknown';

/** A new assembly that begins with the recorded steps of another one. Steps that are not in `keep` run again. */
export interface Fork {
  /** The id of the new assembly. */
  readonly id: string;
  readonly keep: readonly string[];
  readonly version?: number;
  readonly input?: Payload;
}

/**
 * `waiting`: for a worker, a time or a signal. `running`: a worker has it. `parked`: for people. `done` and `stopped` are
 * ends; `stopped` has compensated what was done.
 */
export const assemblyStates = ['waiting', 'running', 'parked', 'done', 'stopped'] as const;
/** The state of an assembly. `done` and `stopped` are final. */
export type AssemblyState = (typeof assemblyStates)[number];

/** An assembly as it is stored, without its steps and signals. */
export interface StoredAssembly {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly state: AssemblyState;
  readonly input: Payload;
  readonly result: Payload | undefined;
  /** Given from the moment it begins, or is asked, to compensate. */
  readonly stop: StopNote | undefined;
  readonly parked: ParkNote | undefined;
  /** True: requests to stop are refused. */
  readonly committed: boolean;
  /** Epoch ms by the store's clock, as all times here. */
  readonly acceptedAt: number;
  /** When the customer's patience ends. */
  readonly expiresAt: number | undefined;
  readonly endedAt: number | undefined;
  /** When it is due; `undefined`: a worker has it, it has ended, or it waits for something from outside. */
  readonly dueAt: number | undefined;
  readonly queue: string | undefined;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly settings: string | undefined;
  /** Grows with everything that comes from outside: signals, requests to stop, another patience. */
  readonly revision: number;
  /** How often a worker died with it since it last made progress. */
  readonly deaths: number;
  /** The worker that has it. */
  readonly worker: string | undefined;
  readonly acts: readonly ActNote[];
}

/** An act of an operator on one assembly: who, what, why and when, in epoch ms. */
export interface ActNote extends Act {
  readonly at: number;
  /** What was changed, in a few words. */
  readonly what: string;
}

/** Which assemblies to list. All that is given must fit; nothing given fits all. */
export interface AssemblyFilter {
  readonly name?: string;
  readonly version?: number;
  readonly state?: AssemblyState;
  readonly queue?: string;
  readonly key?: string;
  readonly tenant?: string;
  /** The fingerprint of the error for which it is parked. */
  readonly fingerprint?: string;
  /** Only assemblies whose compensation was asked for or is done (true), or not (false). */
  readonly stopping?: boolean;
}

/** How many assemblies of a program are in each state. Ended ones count as long as they are kept. */
export type ProgramCounts = ProgramVersion & Readonly<Record<AssemblyState, number>>;

/** Assemblies of one program that are parked for the same reason, with the same error. */
export interface AssemblyGroup {
  readonly name: string;
  readonly because: string;
  /** `undefined`: they are parked without an error. */
  readonly fingerprint: string | undefined;
  readonly count: number;
  /** The one of them that was accepted last, and what is said of it. */
  readonly latestId: string;
  readonly message: string;
}

/** Unless given, a limit does not apply. */
export interface QueueLimits {
  /** The most assemblies of the queue that are leased at the same time, in all workers. Default: no limit. */
  readonly concurrency?: number;
  /** The same, for each key. Default: no limit. */
  readonly concurrencyByKey?: number;
  /**
   * The most that are leased in a time. An assembly that goes on after a wait is not counted again. Default: no limit.
   */
  readonly rate?: QueueRate;
  /** The same, for each key. Default: no limit. */
  readonly rateByKey?: QueueRate;
}

/** At most `count` starts in `perMs` ms. */
export interface QueueRate {
  readonly count: number;
  readonly perMs: number;
}

/** A queue with its limits, how many of its assemblies are leased, and how many wait. */
export interface QueueState {
  readonly name: string;
  readonly limits: QueueLimits;
  readonly leased: number;
  /** How many wait to be leased, those of a later time included. */
  readonly waiting: number;
}
