import {
  assertStored,
  type ClaimedAssembly,
  errorNote,
  type Journal,
  type NewAssembly,
  type NewSignal,
  type ParkNote,
  type Payload,
  type ProgressEntry,
  type ProgressResult,
  type StepRecord,
  type StopNote,
  type StoredStep,
} from '@holdfast/contracts';
import type { Clock, Random } from 'holdfast';
import type { Program } from './assembly.ts';
import { StepFailedError } from './assembly-errors.ts';
import { type AssemblySettings, readSettings } from './assembly-settings.ts';
import { type Compensation, compensationProgram, compensationsIn } from './compensation.ts';
import { ProgramRun } from './program-run.ts';
import type { Scope } from './program-scope.ts';
import { childSignal, type ProgramOutcome, type RunEnd, type RunPort } from './run-port.ts';
import type { ChildEnd } from './steps.ts';
import { stepsOf } from './steps.ts';
import { fromStored, toStored } from './stored-value.ts';
import { noticeStarts } from './webhook.ts';

export interface ExecutionHost {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly random: Random;
  readonly worker: string;
  /** During a wait of up to this length the assembly stays in memory; for a longer wait it is unloaded. */
  readonly holdMs: number;
  /** If the program does not ask for its next recorded step for this time (ms), it may count as changed. */
  readonly quietMs: number;
  /** How long steps may continue after their abort signals were aborted. */
  readonly graceMs: number;
  record(entry: ProgressEntry): Promise<ProgressResult>;
  isDraining(): boolean;
  finished(execution: Execution, end: ExecutionEnd): void;
}

/**
 * How an execution ended. `left`: the assembly is not finished; it was suspended or returned to the store, or
 * its lease was lost.
 */
export type ExecutionEnd =
  | { readonly kind: 'done'; readonly result: Payload | undefined }
  | { readonly kind: 'stopped'; readonly stop: StopNote }
  | { readonly kind: 'parked'; readonly parked: ParkNote }
  | { readonly kind: 'left'; readonly dueInMs: number | undefined };

const LEFT: ExecutionEnd = { kind: 'left', dueInMs: undefined };

const none: readonly NewAssembly[] = [];

type Entry = Omit<ProgressEntry, 'kind' | 'lease' | 'steps'>;

/** One execution of a leased assembly by a worker: it runs the program, or compensates the finished steps. */
export class Execution {
  readonly id: string;
  readonly #host: ExecutionHost;
  readonly #program: Program;
  readonly #claimed: ClaimedAssembly;
  readonly #settings: AssemblySettings;
  readonly #records: Map<string, StoredStep>;
  #signals: ClaimedAssembly['signals'];
  #expiresAt: number;
  #stop: StopNote | undefined;
  #revision: number;
  #deaths: number;
  #lastOrder: number;
  /** The store's clock minus the clock of this process, in ms. */
  readonly #offsetMs: number;
  #run: ProgramRun | undefined;
  #isCompensating = false;
  #refreshing: Promise<void> | undefined;
  /** How this execution ends. This is reported when the last write succeeds. */
  #end: ExecutionEnd = LEFT;

  constructor(host: ExecutionHost, program: Program, claimed: ClaimedAssembly, storeNow: number) {
    this.#host = host;
    this.#program = program;
    this.#claimed = claimed;
    this.id = claimed.id;
    this.#settings = readSettings(claimed.settings);
    this.#records = new Map(claimed.steps.map((step) => [step.path, step]));
    this.#signals = claimed.signals;
    this.#expiresAt = claimed.expiresAt ?? Infinity;
    this.#stop = claimed.stop;
    this.#revision = claimed.revision;
    this.#deaths = claimed.deaths;
    this.#lastOrder = claimed.steps.reduce((last, { order }) => Math.max(last, order), 0);
    this.#offsetMs = storeNow - host.clock.now();
  }

  /**
   * The last revision of the assembly that was read from the store. The revision grows with each signal, each
   * request to stop and each new patience.
   */
  get revision(): number {
    return this.#revision;
  }

  start(): void {
    if (this.#claimed.parked && !this.#stop) return void this.#wakeParked();
    if (this.#stop) {
      this.#collect();
      return;
    }
    const records = this.#recordsOf((kind) => kind !== 'undo');
    const run = new ProgramRun(this.#port(), {
      mode: 'forward',
      records,
      lenient: this.#settings.lenient ?? false,
    });
    this.#run = run;
    run.start((root) => this.#runProgram(run, root));
  }

  async park(parked: ParkNote): Promise<void> {
    const result = await this.#write({ steps: [], ...this.#parkEntry(parked) }).catch(() => undefined);
    this.#host.finished(this, result?.kind === 'took' ? this.#end : LEFT);
  }

  /** Stops a parked assembly when the customer's patience has ended. Otherwise parks it again. */
  async #wakeParked(): Promise<void> {
    if (this.#expiresAt > this.#storeNow()) return this.park(this.#claimed.parked!);
    const stop = {
      because: 'patience_too_short',
      message: 'the patience of the customer ended while it was parked',
    };
    const result = await this.#write({ steps: [], stop }).catch(() => undefined);
    if (result?.kind !== 'took') return this.#host.finished(this, LEFT);
    this.#stop = stop;
    this.#collect();
  }

  /** Reads new signals, requests to stop and a changed patience from the store. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#read().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  drain(): void {
    this.#run?.drain();
  }

  abandon(why: string): void {
    this.#run?.abandon(why);
    this.#host.finished(this, LEFT);
  }

  #runProgram(run: ProgramRun, root: Scope): unknown {
    const { clock, random } = this.#host;
    return this.#program.run(
      stepsOf(run, this.id, root, { clock, random }),
      fromStored(this.#claimed.input) as never,
    );
  }

  /** Runs the program with recorded results only, to collect the `undo` functions of its steps. */
  #collect(): void {
    const records = this.#recordsOf((kind) => kind !== 'undo');
    const run = new ProgramRun(this.#port(), {
      mode: 'collect',
      records,
      lenient: this.#settings.lenient ?? false,
    });
    this.#run = run;
    run.start((root) => this.#runProgram(run, root));
  }

  #recordsOf(isWanted: (kind: StepRecord['kind']) => boolean): StoredStep[] {
    return [...this.#records.values()].filter(({ kind }) => isWanted(kind));
  }

  async #compensate(end: RunEnd & { kind: 'collected' }): Promise<void> {
    const undone = this.#recordsOf((kind) => kind === 'undo');
    // If a worker died, steps without a record may have begun. They are recorded before the first `undo`.
    const mayHaveBegun = this.#deaths > 0 && undone.length === 0;
    const found = compensationsIn(end.steps, this.#records, mayHaveBegun);
    // These records give the steps order numbers. With these numbers, the next run compensates the same steps
    // in the same order.
    const begun = found
      .filter(({ record }) => record === undefined)
      .reverse()
      .map((each) => this.#begun(each));
    if (begun.length > 0) {
      const result = await this.#write({ steps: begun }).catch(() => undefined);
      if (result?.kind !== 'took') return this.#host.finished(this, LEFT);
    }
    this.#isCompensating = true;
    const run = new ProgramRun(this.#port(), { mode: 'forward', records: undone });
    this.#run = run;
    const { clock, random, journal } = this.#host;
    run.start((root) =>
      compensationProgram({ run, root, id: this.id, found, journal, environment: { clock, random } }),
    );
  }

  #begun({ path, kind }: Compensation): StepRecord {
    const at = Math.floor(this.#storeNow());
    return { path, kind, state: 'begun', attempts: 1, order: ++this.#lastOrder, at };
  }

  #over(end: RunEnd): void {
    switch (end.kind) {
      case 'stopped':
        this.#stop ??= end.stop;
        this.#collect();
        return;
      case 'collected':
        return void this.#compensate(end);
      case 'changed':
        return void this.park({
          because: 'program_changed',
          message: end.error.message,
          paths: [],
          error: errorNote(end.error),
        });
      default:
        this.#host.finished(this, end.kind === 'lost' ? LEFT : this.#end);
    }
  }

  #port(): RunPort {
    const { clock, random, worker, holdMs, quietMs, graceMs, journal, isDraining } = this.#host;
    return {
      ...{ id: this.id, clock, random, worker, holdMs, quietMs, graceMs, isDraining, limits: journal.limits },
      program: `${this.#program.name}@${this.#program.version}`,
      acceptedAt: this.#claimed.acceptedAt,
      patienceEndsAt: () => (this.#stop ? Infinity : this.#expiresAt - this.#offsetMs),
      storeNow: () => this.#storeNow(),
      nextOrder: () => ++this.#lastOrder,
      signals: () => this.#signals,
      refresh: () => this.refresh(),
      record: (entry) => this.#write(entry),
      endEntry: (outcome) =>
        this.#isCompensating ? this.#compensatedEntry(outcome) : this.#endEntry(outcome),
      suspendEntry: (dueInMs) => {
        this.#end = { kind: 'left', dueInMs };
        return {
          next: { kind: 'suspend', revision: this.#revision, ...(dueInMs !== undefined && { dueInMs }) },
        };
      },
      withRecords: (steps) => this.#withRecords(steps),
      over: (end) => this.#over(end),
    };
  }

  async #write(entry: Omit<ProgressEntry, 'kind' | 'lease'>): Promise<ProgressResult> {
    const clearDeaths = this.#deaths > 0 && entry.steps.some(({ state }) => state === 'done');
    if (clearDeaths) this.#deaths = 0;
    const result = await this.#host.record({
      kind: 'progress',
      lease: this.#claimed.lease,
      ...entry,
      ...(clearDeaths && { clearDeaths }),
    });
    if (result.kind !== 'took') return result;
    for (const step of entry.steps) this.#remember(step);
    if (entry.transaction) this.#remember({ ...entry.transaction.step, result: result.result });
    if (result.revision > this.#revision) {
      if (!entry.next) void this.refresh();
      // A signal or a request to stop arrived before this write, so this end may not be final.
      else this.#end = LEFT;
    }
    return result;
  }

  /**
   * Updates the record of the step in memory, because a compensation in this process does not read the store
   * again.
   */
  #remember(step: StepRecord): void {
    if (step.dueInMs === undefined) {
      this.#records.set(step.path, step);
      return;
    }
    const { dueInMs, ...rest } = step;
    this.#records.set(step.path, { ...rest, dueAt: this.#storeNow() + dueInMs });
  }

  #endEntry(outcome: ProgramOutcome): Entry {
    if (!outcome.ok) return this.#failedEntry(outcome.error);
    try {
      const result = toStored(outcome.value, 'the result of the program');
      assertStored('the result of the program', result, this.#host.journal.limits);
      this.#end = { kind: 'done', result };
      return {
        next: { kind: 'done', result },
        signals: this.#endSignals({ result }),
        starts: this.#notices('done', 'done'),
      };
    } catch (error) {
      return this.#failedEntry(error);
    }
  }

  #failedEntry(error: unknown): Entry {
    const failed = error instanceof StepFailedError ? error : undefined;
    const note = failed?.note ?? errorNote(error);
    const because = failed?.because ?? 'not_retryable';
    const message = failed?.message ?? note.message;
    if (this.#program.options.onFailure === 'undo') {
      this.#stop = { because, message };
      return { stop: this.#stop, next: { kind: 'return' } };
    }
    const paths = failed ? [failed.step, ...failed.also.map(({ step }) => step)] : [];
    return this.#parkEntry({ because, message, paths, error: note });
  }

  #compensatedEntry(outcome: ProgramOutcome): Entry {
    if (outcome.ok) {
      const { because, message } = this.#stop!;
      this.#end = { kind: 'stopped', stop: this.#stop! };
      return {
        next: { kind: 'stopped' },
        signals: this.#endSignals({ stopped: { because, message } }),
        starts: this.#notices('stopped', 'stopped'),
      };
    }
    return this.#failedEntryOfUndo(outcome.error);
  }

  #failedEntryOfUndo(error: unknown): Entry {
    const failed = error instanceof StepFailedError ? error : undefined;
    const note = failed?.note ?? errorNote(error);
    return this.#parkEntry({
      because: failed?.because ?? 'not_retryable',
      message: `the compensation failed: ${failed?.message ?? note.message}`,
      paths: failed ? [failed.step] : [],
      error: note,
    });
  }

  /** Parks the assembly until a person decides, or until the customer's patience ends. */
  #parkEntry(parked: ParkNote): Entry {
    const leftMs = this.#stop ? Infinity : this.#expiresAt - this.#storeNow();
    this.#end = { kind: 'parked', parked };
    return {
      next: {
        kind: 'park',
        parked,
        revision: this.#revision,
        ...(leftMs < Infinity && { dueInMs: Math.max(0, leftMs) }),
      },
      starts: this.#notices('problem', `problem/${this.#lastOrder}`),
    };
  }

  /**
   * Returns the signals that tell the parent assembly about the end. A stopped child sends two signals;
   * `stopChild` waits for the second one.
   */
  #endSignals(end: ChildEnd): NewSignal[] {
    const { parent } = this.#settings;
    if (!parent) return [];
    const name = childSignal(parent.path);
    const payload = JSON.stringify(end);
    const ended = { to: parent.id, id: `${this.id}/end`, name, payload };
    return end.stopped ? [ended, { ...ended, id: `${this.id}/stopped`, name: `${name}/stopped` }] : [ended];
  }

  #withRecords(steps: readonly StepRecord[]): readonly NewAssembly[] {
    if (!this.#settings.notify?.on?.includes('step')) return none;
    const done = steps.filter(({ state, kind }) => state === 'done' && kind !== 'change');
    return done.flatMap(({ path, order }) => this.#notices('step', `step/${order}`, path));
  }

  #notices(
    type: 'done' | 'stopped' | 'problem' | 'step',
    number: string,
    step?: string,
  ): readonly NewAssembly[] {
    const { notify } = this.#settings;
    if (!notify) return none;
    return noticeStarts(notify, {
      ...{ id: this.id, name: this.#program.name, type, number, step },
      because: type === 'stopped' ? this.#stop?.because : undefined,
      at: this.#storeNow(),
    });
  }

  async #read(): Promise<void> {
    const { journal } = this.#host;
    try {
      const [[stored], signals] = await Promise.all([
        journal.get([this.id]),
        journal.signals(this.id, this.#signals.at(-1)?.number ?? 0),
      ]);
      if (!stored) return;
      this.#revision = Math.max(this.#revision, stored.revision);
      if (signals.length > 0) this.#signals = [...this.#signals, ...signals];
      this.#expiresAt = stored.expiresAt ?? Infinity;
      if (stored.stop && !this.#stop) {
        this.#run?.stop(stored.stop);
        this.#stop = stored.stop;
      }
      this.#run?.patienceChanged();
      if (signals.length > 0) this.#run?.signalsCame();
    } catch {
      // The store did not answer. The next heartbeat reports the change again.
    }
  }

  #storeNow(): number {
    return this.#host.clock.now() + this.#offsetMs;
  }
}
