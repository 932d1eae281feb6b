import 'holdfast/ambient';
import {
  type Act,
  type AssemblyFilter,
  type ClaimedAssembly,
  type Engine,
  type Journal,
  type NewAssembly,
  type Page,
  type PageRequest,
  type QueueLimits,
  type StartEntry,
  type StartResult,
  type StoredAssembly,
  type StoredSignal,
  type StoredStep,
  timeOrderedId,
} from '@holdfast/contracts';
import {
  type Clock,
  type Duration,
  durationMs,
  OptionsError,
  type Random,
  systemClock,
  systemRandom,
  Timer,
} from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { type Program, patienceOf } from './assembly.ts';
import {
  AssemblyParkedError,
  AssemblyStateError,
  AssemblyStoppedError,
  MismatchError,
  UnknownAssemblyError,
} from './assembly-errors.ts';
import { type AssemblySettings, readSettings } from './assembly-settings.ts';
import { type AssemblyStatus, statusOf } from './assembly-status.ts';
import type { ExecutionEnd } from './execution.ts';
import { allSteps, follow, type Notice } from './notices.ts';
import { ProgramControls } from './program-controls.ts';
import { Recorder } from './recorder.ts';
import { type Schedule, Schedules } from './schedules.ts';
import { SlotMap } from './slot-map.ts';
import { fromStored, toStored } from './stored-value.ts';
import { Waits } from './waits.ts';
import { Watcher } from './watcher.ts';
import { assertNotify, type Notify, noticeStarts } from './webhook.ts';
import { type WebhookOptions, webhooks } from './webhook-program.ts';
import { programKey, Worker } from './worker.ts';

/** The options of `assemblies()`. `engine` and `programs` are required. */
export interface AssembliesOptions<Tx = unknown> {
  /** The store. It must have a journal; the SQLite, PostgreSQL and memory engines have one. Required. */
  readonly engine: Pick<Engine<Tx>, 'name' | 'journal' | 'controls' | 'sweep'>;
  /**
   * All programs that this process can run. List each version of a program that still has unfinished
   * assemblies. Required.
   */
  // biome-ignore lint/suspicious/noExplicitAny: programs of any input and result
  readonly programs: readonly Program<any, any, Tx>[];
  /** The most assemblies that run in this process at the same time. Default: `100`. */
  readonly concurrency?: number | undefined;
  /**
   * How long a lease lasts. If a worker dies, other workers take its assemblies within this time. Default:
   * `30s`.
   */
  readonly lease?: Duration | undefined;
  /**
   * A wait of up to this length keeps the assembly in memory. For a longer wait the assembly is written to
   * the store and unloaded. Default: `5s`.
   */
  readonly hold?: Duration | undefined;
  /** How long running steps may continue after the worker or their assembly is stopped. Default: `10s`. */
  readonly grace?: Duration | undefined;
  /** An assembly is parked if this many workers died in a row while they ran it. Default: `3`. */
  readonly deathsMax?: number | undefined;
  /** The limits of each queue, by the name of the queue. Default: none. */
  readonly queues?: Readonly<Record<string, QueueLimits>> | undefined;
  /** Assemblies that are started at regular times, by a cron expression. Default: none. */
  readonly schedules?: readonly Schedule[] | undefined;
  /**
   * How the URLs of `notify` are called, and the secrets with which the messages are signed. Default: without
   * secrets.
   */
  readonly webhooks?: WebhookOptions | undefined;
  /** The clock for all waits and timeouts. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: the system's. */
  readonly random?: Random | undefined;
  /**
   * Called when background work failed, such as a call of the store. Calls of the store are tried again.
   * Default: none.
   */
  readonly onFailure?: ((what: string, error: unknown) => void) | undefined;
  /**
   * Called when this process has parked an assembly, so that it waits for a person. Default: none, and the
   * first parked assembly for which no `result()` waits is reported as a warning of the process.
   */
  readonly onParked?: ((error: AssemblyParkedError) => void) | undefined;
}

const known: Readonly<Record<keyof AssembliesOptions, true>> = {
  engine: true,
  programs: true,
  concurrency: true,
  lease: true,
  hold: true,
  grace: true,
  deathsMax: true,
  queues: true,
  schedules: true,
  webhooks: true,
  clock: true,
  random: true,
  onFailure: true,
  onParked: true,
};

/**
 * The options of one start, beside the input. If an assembly with this `id` exists, no second one is started.
 */
export interface StartOptions {
  /**
   * The tracking number of the assembly. A second start with the same id returns the existing assembly.
   * Default: a new id.
   */
  readonly id?: string | undefined;
  /**
   * How long the customer waits: a duration, or the name of a patience class of the program. Default: that of
   * the program.
   */
  readonly patience?: Duration | string | undefined;
  /**
   * What gets the notices: a function, which is called in this process, or a URL, which any process may
   * call. Default: none.
   */
  readonly notify?: ((notice: Notice) => void) | Notify | undefined;
  /** The name of the queue whose limits apply to this assembly. Default: none. */
  readonly queue?: string | undefined;
  /** Limits of the queue that count per key count this assembly under this key. Default: none. */
  readonly key?: string | undefined;
  /** The tenant of the assembly, for lists and filters. Default: none. */
  readonly tenant?: string | undefined;
  /** How long after the start the first step begins. Default: at once. */
  readonly delay?: Duration | undefined;
}

/** Controls one assembly, which is identified by its id (the tracking number). */
export interface AssemblyHandle<Result = unknown> {
  readonly id: string;
  /** True: an assembly with this id existed before, so `start` started no other one. */
  readonly repeated: boolean;
  status(): Promise<AssemblyStatus>;
  /**
   * Resolves with the result when the assembly ends. Rejects with an `AssemblyStoppedError` if the assembly
   * was stopped, and with the abort reason if `options.signal` aborts. If the assembly is parked, it rejects
   * with an `AssemblyParkedError`; with `waitWhileParked`, it waits until a person has decided. When `stop`
   * is done, it rejects with an `AssemblyStateError` if the assembly has not ended: the assembly continues in
   * another process, or after a restart.
   */
  result(options?: { readonly signal?: AbortSignal; readonly waitWhileParked?: boolean }): Promise<Result>;
  /**
   * Stops the assembly and compensates the steps that are done, even if the assembly has ended. Throws if a
   * `pivot` step is done: after such a step, an assembly cannot be cancelled. With `who`, the audit log says
   * who has cancelled it.
   */
  cancel(reason: string, who?: string): Promise<void>;
  /**
   * Sends a signal to the assembly. Two signals with the same `id` count as one. Returns false if the
   * assembly has ended. With `act`, the audit log says who sent the signal and why.
   */
  signal(
    name: string,
    payload?: unknown,
    options?: { readonly id?: string; readonly act?: Act },
  ): Promise<boolean>;
  /** Sets the customer's patience to this duration, counted from now. */
  extend(patience: Duration): Promise<void>;
  /** Yields a notice for each change of the assembly, until the assembly ends or this process is stopped. */
  follow(options?: {
    readonly after?: number;
    readonly signal?: AbortSignal;
  }): AsyncGenerator<Notice, void, undefined>;
}

/** Everything that the store knows about one assembly. */
export interface Inspection {
  readonly assembly: StoredAssembly;
  readonly status: AssemblyStatus;
  readonly steps: readonly StoredStep[];
  readonly signals: readonly StoredSignal[];
}

/** What an operator may change in an assembly while no worker runs it. */
export interface AssemblyEdit {
  readonly input?: unknown;
  /** Results by step path. A step with a result here counts as done. */
  readonly results?: Readonly<Record<string, unknown>>;
}

/** Starts and controls assemblies. This process runs steps of assemblies only between `run` and `stop`. */
export interface Assemblies<Tx = unknown> {
  readonly journal: Journal<Tx>;
  /** The name of the worker in this process. */
  readonly worker: string;
  /** From this call on, this process leases assemblies and runs their steps. */
  run(): Promise<void>;
  /**
   * Begins no more steps, and releases the leases of this process. Running steps may continue until `grace`
   * ends. After that, each `result()` that waits for an unfinished assembly rejects, and each `follow()` ends.
   */
  stop(options?: { readonly grace?: Duration }): Promise<void>;

  start<Input, Result>(
    program: Program<Input, Result, Tx>,
    input: Input,
    options?: StartOptions,
  ): Promise<AssemblyHandle<Result>>;
  /**
   * Starts an assembly within a transaction of the caller: if the transaction rolls back, the assembly does
   * not exist.
   */
  startWithin<Input, Result>(
    tx: Tx,
    program: Program<Input, Result, Tx>,
    input: Input,
    options?: StartOptions,
  ): StartResult | Promise<StartResult>;
  /**
   * Returns the handle of an assembly without reading the store. If the id does not exist, the first call on
   * the handle throws.
   */
  get<Result = unknown>(id: string): AssemblyHandle<Result>;

  list(filter: AssemblyFilter, page?: PageRequest): Promise<Page<StoredAssembly>>;
  inspect(id: string): Promise<Inspection>;
  /** Replaces the input, or results of steps. */
  edit(id: string, edit: AssemblyEdit, act: Act): Promise<void>;
  /**
   * Continues a parked assembly at the step that failed. `version`: continue with this version of the
   * program. `acceptChange`: continue even if the program has changed and asks for other steps than the
   * recorded ones. In this case, recorded results are matched to steps by name only.
   */
  resume(
    id: string,
    act: Act,
    options?: { readonly version?: number; readonly acceptChange?: boolean },
  ): Promise<void>;
  /**
   * Starts a copy of the assembly. The copy keeps the results of the steps before `from`, or of all steps
   * that are done if `from` is not given. Returns the id of the copy.
   */
  fork(
    id: string,
    act: Act,
    options?: {
      readonly from?: string;
      readonly id?: string;
      readonly version?: number;
      readonly input?: unknown;
    },
  ): Promise<string>;
  readonly state: AssembliesState;
}

/** What this process does at the moment. */
export interface AssembliesState {
  readonly worker: string;
  readonly isRunning: boolean;
  /** The number of assemblies that this process runs. */
  readonly leased: number;
  /** How many calls of `journal.record` this process has made. */
  readonly recordCalls: number;
}

const sweepEveryMs = 10 * 60 * 1000;
const sweepAgainMs = 100;
const sweptTogether = 1000;

/**
 * Runs programs of several steps, keeps their progress in a store, and lets people follow and control them.
 */
export function assemblies<Tx = unknown>(options: AssembliesOptions<Tx>): Assemblies<Tx> {
  assertKnownFields(known, options);
  const { engine, clock = systemClock, random = systemRandom, concurrency = 100, deathsMax = 3 } = options;
  const journal = engine?.journal;
  if (!journal) throw new OptionsError('engine', engine?.name, 'an engine with a journal');
  const { lease = '30s', hold = '5s', grace = '10s', onFailure = () => {} } = options;
  for (const [name, value] of Object.entries({ concurrency, deathsMax }))
    if (!(Number.isSafeInteger(value) && value >= 1))
      throw new OptionsError(name, value, 'a whole number from 1');
  const leaseMs = durationMs(lease, 'lease');
  const programs = programsOf([
    ...(options.programs as readonly Program[]),
    webhooks(options.webhooks) as Program,
  ]);
  const newId = timeOrderedId(clock, random);
  const name = `worker-${newId()}`;
  const recorder = new Recorder(journal as Journal, { clock, random }, leaseMs);
  const local = new SlotMap<((end: ExecutionEnd) => boolean)[]>();
  let hasWarned = false;
  const controls = new ProgramControls({
    controls: engine.controls,
    ...{ clock, onFailure, onChange: () => worker.controlsChanged() },
  });
  const worker: Worker = new Worker({
    ...{ name, recorder, clock, random, programs, controls, concurrency, leaseMs, deathsMax, onFailure },
    journal: journal as Journal,
    holdMs: durationMs(hold, 'hold'),
    quietMs: 100,
    graceMs: durationMs(grace, 'grace'),
    onEnd(id, end) {
      let isHeard = false;
      for (const listener of local.get(id) ?? []) isHeard = listener(end) || isHeard;
      watcher.changed(id);
      if (end.kind === 'parked') reportParked(new AssemblyParkedError(id, end.parked), isHeard);
    },
  });
  const watcher = new Watcher(journal as Journal, (id) => worker.has(id));
  const schedules = new Schedules({
    ...{ clock, journal: journal as Journal, schedules: options.schedules ?? [], onFailure },
    start: async (program, input, id, startOptions) => {
      await start(program, input, { ...startOptions, id });
    },
  });

  /**
   * Calls `onParked`, or writes a warning about the first parked assembly. `isHeard`: a caller of `result()`
   * in this process was given the error, so no warning is written.
   */
  function reportParked(error: AssemblyParkedError, isHeard: boolean): void {
    if (options.onParked) {
      try {
        options.onParked(error);
      } catch (thrown) {
        onFailure('onParked', thrown);
      }
      return;
    }
    if (hasWarned || isHeard) return;
    hasWarned = true;
    process.emitWarning(
      `${error.message}. More may follow without a warning: onParked of assemblies() tells of each, and ` +
        '"holdfast assembly ls --state parked" lists them.',
      { code: error.code },
    );
  }

  const waits = new Waits();

  const sweepTimer = new Timer(clock, () => void sweep());

  /** Deletes ended assemblies whose retention time (`keep`) is over, at most `sweptTogether` in one call. */
  async function sweep(): Promise<void> {
    const swept = await engine.sweep(sweptTogether).catch((error: unknown) => {
      onFailure('sweep', error);
      return 0;
    });
    if (worker.isRunning) sweepTimer.setIn(swept >= sweptTogether ? sweepAgainMs : sweepEveryMs);
  }

  function newAssembly(program: Program, input: unknown, given: StartOptions): NewAssembly {
    assertProgram('program', program);
    const { queue, key, tenant, delay } = given;
    const { ms, class: patienceClass } = patienceOf(program, given.patience);
    const { plan, keep } = program.options;
    const notify =
      typeof given.notify === 'object' ? assertNotify(given.notify, options.webhooks) : undefined;
    const settings: AssemblySettings = {
      ...(plan && { plan }),
      ...(patienceClass !== undefined && { class: patienceClass }),
      ...(notify && { notify }),
    };
    return {
      ...{ id: given.id ?? newId(), name: program.name, version: program.version },
      input: toStored(input, 'input') ?? 'null',
      ...(ms !== undefined && ms < Infinity && { patienceMs: ms }),
      ...(queue !== undefined && { queue }),
      ...(key !== undefined && { key }),
      ...(tenant !== undefined && { tenant }),
      ...(delay !== undefined && { dueInMs: durationMs(delay, 'delay') }),
      ...(keep !== undefined && { keepMs: durationMs(keep, 'keep') }),
      ...(Object.keys(settings).length > 0 && { settings: JSON.stringify(settings) }),
    };
  }

  async function start(program: Program, input: unknown, given: StartOptions = {}): Promise<AssemblyHandle> {
    const made = newAssembly(program, input, given);
    const isHere = worker.hasRoomFor(made);
    const entry: StartEntry = { kind: 'start', start: made, ...(isHere && { worker: { name, leaseMs } }) };
    const { notify } = readSettings(made.settings);
    if (notify) {
      const source = {
        id: made.id,
        name: made.name,
        type: 'accepted',
        number: 'accepted',
        at: clock.epochMs(),
      } as const;
      for (const notice of noticeStarts(notify, source))
        void recorder.record({ kind: 'start', start: notice });
    }
    const result = (await recorder.record(entry)) as StartResult;
    if (result.kind === 'mismatch') throw new MismatchError(made.id);
    if (result.kind === 'accepted' && result.lease) {
      const claimed = claimedOf(made, result.lease, result.at, name);
      worker.adopt(claimed, result.at);
    }
    const handle = handleOf(made.id, result.kind === 'repeated');
    if (typeof given.notify === 'function') void tell(handle, given.notify);
    return handle;
  }

  async function tell(handle: AssemblyHandle, notify: (notice: Notice) => void): Promise<void> {
    try {
      for await (const notice of handle.follow()) notify(notice);
    } catch (error) {
      onFailure('notify', error);
    }
  }

  async function storedOf(id: string): Promise<StoredAssembly> {
    const [stored] = await journal!.get([id]);
    if (!stored) throw new UnknownAssemblyError(id);
    return stored;
  }

  async function statusNow(id: string): Promise<AssemblyStatus> {
    const stored = await storedOf(id);
    return statusOf(stored, await allSteps(journal as Journal, id), await journal!.now());
  }

  function resultOf(
    id: string,
    { signal, waitWhileParked = false }: Parameters<AssemblyHandle['result']>[0] = {},
  ): Promise<unknown> {
    if (waits.areOver && !signal?.aborted) return resultNow(id, waitWhileParked);
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        unwatch?.();
        forget();
        const listeners = (local.get(id) ?? []).filter((each) => each !== ended);
        if (listeners.length > 0) local.set(id, listeners);
        else local.delete(id);
        signal?.removeEventListener('abort', aborted);
        end();
      };
      const aborted = () => settle(() => reject(signal?.reason));
      const left = () => settle(() => reject(leftError(id)));
      /**
       * Settles the promise of the caller if the assembly has ended or is parked. Returns true if it has
       * settled the promise.
       */
      const ended = (end: ExecutionEnd): boolean => {
        if (end.kind === 'done') settle(() => resolve(fromStored(end.result)));
        else if (end.kind === 'stopped') settle(() => reject(new AssemblyStoppedError(id, end.stop)));
        else if (end.kind === 'parked' && !waitWhileParked)
          settle(() => reject(new AssemblyParkedError(id, end.parked)));
        else {
          watch();
          return false;
        }
        return true;
      };
      const watch = () => {
        unwatch ??= watcher.watch(id, (stored) => {
          if (!stored) settle(() => reject(new UnknownAssemblyError(id)));
          else if (stored.state === 'done') ended({ kind: 'done', result: stored.result });
          else if (stored.state === 'stopped') ended({ kind: 'stopped', stop: stored.stop! });
          else if (stored.state === 'parked') ended({ kind: 'parked', parked: stored.parked! });
        });
      };
      let unwatch: (() => void) | undefined;
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      signal?.addEventListener('abort', aborted);
      const forget = waits.add(left);
      local.set(id, [...(local.get(id) ?? []), ended]);
      // If the assembly runs in this process, `onEnd` of the worker calls `ended`. Otherwise watch the store.
      if (!worker.has(id)) watch();
    });
  }

  /** The answer of `result()` after `stop()`: it does not wait. */
  async function resultNow(id: string, waitWhileParked: boolean): Promise<unknown> {
    const { state, result, stop, parked } = await storedOf(id);
    if (state === 'done') return fromStored(result);
    if (state === 'stopped') throw new AssemblyStoppedError(id, stop!);
    if (state === 'parked' && !waitWhileParked) throw new AssemblyParkedError(id, parked!);
    throw leftError(id);
  }

  function handleOf(id: string, repeated = false): AssemblyHandle {
    return {
      id,
      repeated,
      status: () => statusNow(id),
      result: (given) => resultOf(id, given),
      async cancel(reason, who) {
        if (typeof reason !== 'string' || reason === '') throw new OptionsError('reason', reason, 'a reason');
        const stop = { because: 'cancelled', message: reason, ...(who !== undefined && { who }) };
        const [result] = await journal!.requestStop([{ id, stop }]);
        if (result === 'unknown') throw new UnknownAssemblyError(id);
        if (result === 'committed')
          throw new AssemblyStateError(id, 'is committed, and can not be cancelled');
      },
      async signal(signalName, payload, { id: signalId = newId(), act } = {}) {
        const stored = toStored(payload, 'payload');
        const sent = { to: id, id: signalId, name: signalName, payload: stored };
        const [result] = await journal!.signal([{ ...sent, ...(act && { act }) }]);
        if (result === 'unknown') throw new UnknownAssemblyError(id);
        return result !== 'ended';
      },
      async extend(patience) {
        if (!(await journal!.setPatience(id, durationMs(patience, 'patience'))))
          throw new AssemblyStateError(id, 'does not exist, or has ended');
      },
      follow: (given = {}) => follow(id, { journal: journal as Journal, watcher, waits, ...given }),
    };
  }

  async function change(id: string, changes: Parameters<Journal['change']>[1], act: Act): Promise<void> {
    const result = await journal!.change(id, changes, act);
    if (result === 'unknown') throw new UnknownAssemblyError(id);
    if (result === 'leased')
      throw new AssemblyStateError(id, 'is running: try again when it waits or is parked');
    if (result === 'ended') throw new AssemblyStateError(id, 'has ended: fork it instead');
  }

  return {
    journal,
    worker: name,

    async run() {
      waits.begin();
      for (const [queue, limits] of Object.entries(options.queues ?? {}))
        await journal.setQueue(queue, limits);
      await controls.start();
      worker.start();
      sweepTimer.setIn(sweepEveryMs);
      await schedules.start();
    },

    async stop({ grace: given = grace } = {}) {
      schedules.stop();
      sweepTimer.clear();
      controls.stop();
      try {
        await worker.stop(durationMs(given, 'grace'));
      } finally {
        waits.end();
      }
    },

    start: (program, input, given) => start(program as Program, input, given) as Promise<never>,

    startWithin(tx, program, input, given = {}) {
      const started = journal.startWithin(tx, [newAssembly(program as Program, input, given)]);
      return started instanceof Promise ? started.then(([first]) => first!) : started[0]!;
    },

    get: (id) => handleOf(id) as AssemblyHandle<never>,

    list: (filter, page = { limit: 100 }) => journal.list(filter, page),

    async inspect(id) {
      const assembly = await storedOf(id);
      const [steps, signals, now] = await Promise.all([
        allSteps(journal as Journal, id),
        journal.signals(id),
        journal.now(),
      ]);
      return { assembly, status: statusOf(assembly, steps, now), steps, signals };
    },

    async edit(id, { input, results = {} }, act) {
      const put = Object.entries(results).map(([path, result]) => ({ path, result: toStored(result, path) }));
      const text = toStored(input, 'input');
      await change(id, { ...(text !== undefined && { input: text }), put }, act);
    },

    async resume(id, act, { version, acceptChange = false } = {}) {
      const { parked, state, settings } = await storedOf(id);
      if (state !== 'parked' || !parked) throw new AssemblyStateError(id, `is ${state}, and not parked`);
      const steps = await allSteps(journal as Journal, id);
      // Delete only records of failed steps, so that these steps run again. A result that an operator has set
      // by `edit` stays.
      const failed = steps.filter((step) => step.state === 'failed' && parked.paths.includes(step.path));
      const lenient: AssemblySettings = { ...readSettings(settings), lenient: true };
      await change(
        id,
        {
          forget: failed.map(({ path }) => path),
          resume: true,
          ...(version !== undefined && { version }),
          ...(acceptChange && { settings: JSON.stringify(lenient) }),
        },
        act,
      );
    },

    async fork(id, act, { from, id: forkId = newId(), version, input } = {}) {
      await storedOf(id);
      const steps = (await allSteps(journal as Journal, id)).filter(({ kind }) => kind !== 'undo');
      const at = from === undefined ? undefined : steps.find(({ path }) => path === from);
      if (from !== undefined && !at) throw new OptionsError('from', from, `a step of ${id}`);
      const keep = steps.filter(({ order, state }) => state === 'done' && (!at || order < at.order));
      const text = toStored(input, 'input');
      const result = await journal.fork(
        id,
        {
          ...{ id: forkId, keep: keep.map(({ path }) => path) },
          ...(version !== undefined && { version }),
          ...(text !== undefined && { input: text }),
        },
        act,
      );
      if (result === 'repeated') throw new AssemblyStateError(forkId, 'exists already');
      return forkId;
    },

    get state() {
      return { worker: name, isRunning: worker.isRunning, leased: worker.size, recordCalls: recorder.calls };
    },
  };
}

function programsOf(given: readonly Program[]): Map<string, Program> {
  const programs = new Map<string, Program>();
  for (const program of given) {
    assertProgram('programs', program);
    const key = programKey(program.name, program.version);
    if (programs.has(key)) throw new OptionsError('programs', key, 'each version of a program once');
    programs.set(key, program);
  }
  return programs;
}

function assertProgram(path: string, program: Program): void {
  const { name, options, run } = Object(program) as Partial<Program>;
  if (typeof name !== 'string' || typeof options !== 'object' || typeof run !== 'function')
    throw new OptionsError(path, program, 'a program that assembly() has made');
}

function leftError(id: string): AssemblyStateError {
  return new AssemblyStateError(
    id,
    'has not ended, and this process was stopped: the assembly continues in the next process that runs its program',
  );
}

/**
 * Builds what `journal.claim` would return for an assembly that was started a moment ago. This saves one
 * read.
 */
function claimedOf(
  start: NewAssembly,
  lease: ClaimedAssembly['lease'],
  at: number,
  worker: string,
): ClaimedAssembly {
  const { id, name, version, input, settings, queue, key, tenant, patienceMs } = start;
  return {
    ...{ id, name, version, input, settings, queue, key, tenant, lease, worker, acceptedAt: at },
    ...{ state: 'running', result: undefined, stop: undefined, parked: undefined, committed: false },
    ...{ endedAt: undefined, dueAt: undefined, revision: 0, deaths: 0, acts: [], steps: [], signals: [] },
    expiresAt: patienceMs === undefined ? undefined : at + patienceMs,
  };
}
