import type {
  ClaimedAssembly,
  Journal,
  NewAssembly,
  ProgressEntry,
  ProgressResult,
} from '@holdfast/contracts';
import { type Clock, type Random, Timer, withoutAmbient } from 'holdfast';
import { afterMicrotasks } from './after-microtasks.ts';
import type { Program } from './assembly.ts';
import { Execution, type ExecutionEnd, type ExecutionHost } from './execution.ts';
import type { ProgramControls } from './program-controls.ts';
import type { Recorder } from './recorder.ts';
import { SlotMap } from './slot-map.ts';

export interface WorkerSettings {
  readonly name: string;
  readonly journal: Journal;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly random: Random;
  readonly programs: ReadonlyMap<string, Program>;
  readonly controls: Pick<ProgramControls, 'isPaused' | 'isHeld'>;
  /** The most assemblies that run in this process at the same time. */
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly holdMs: number;
  readonly quietMs: number;
  readonly graceMs: number;
  /** An assembly is parked if this many workers died in a row while they ran it. */
  readonly deathsMax: number;
  onEnd(id: string, end: ExecutionEnd): void;
  onFailure(what: string, error: unknown): void;
}

/** With three heartbeats per lease, two may fail before the lease ends. */
const beatsPerLease = 3;
/**
 * The shortest and longest time (ms) after which an idle worker asks the store for work by itself, because
 * notifications of new work may be lost. The time doubles each time that the worker finds nothing.
 */
const idleMinMs = 1000;
const idleMaxMs = 60_000;
/** After a notification, the running assemblies are checked for changes at most this often. */
const newsEveryMs = 50;
/** After this time, a quarantined assembly is tried again. */
const heldForMs = 30_000;
/**
 * An assembly with which this many workers have died runs alone in a process, so that another crash affects
 * no other assembly.
 */
const suspectDeaths = 2;

export function programKey(name: string, version: number): string {
  return `${name}@${version}`;
}

/** Leases assemblies and runs them. One heartbeat extends the leases of all assemblies of this worker. */
export class Worker {
  readonly #settings: WorkerSettings;
  readonly #host: ExecutionHost;
  readonly #executions = new SlotMap<Execution>();
  readonly #pollTimer: Timer;
  readonly #beatTimer: Timer;
  readonly #newsTimer: Timer;
  #stopListening: (() => void) | undefined;
  #isRunning = false;
  #isDraining = false;
  #isClaiming = false;
  #isPollWanted = false;
  #isAlone = false;
  #suspects = 0;
  /** Until this time, suspects (assemblies with which workers died) are left to other processes. */
  #ignoresSuspectsUntil = 0;
  #drainsSince: number | undefined;
  #idleMs = idleMinMs;
  #leaseEndsAt = 0;
  #onEmpty: (() => void) | undefined;

  constructor(settings: WorkerSettings) {
    this.#settings = settings;
    const { journal, clock, random, name, holdMs, quietMs, graceMs } = settings;
    this.#host = {
      ...{ journal, clock, random, worker: name, holdMs, quietMs, graceMs },
      record: (entry) => settings.recorder.record(entry as ProgressEntry) as Promise<ProgressResult>,
      isDraining: () => this.#isDraining,
      finished: (execution, end) => this.#finished(execution, end),
    };
    this.#pollTimer = new Timer(clock, () => this.#poll());
    this.#beatTimer = new Timer(clock, () => void this.#beat());
    this.#newsTimer = new Timer(clock, () => void this.#beat());
  }

  get size(): number {
    return this.#executions.size;
  }

  get isRunning(): boolean {
    return this.#isRunning && !this.#isDraining;
  }

  hasRoomFor(start: NewAssembly): boolean {
    const { programs, controls, concurrency } = this.#settings;
    if (!this.isRunning || this.#isAlone || this.#suspects > 0 || this.size >= concurrency) return false;
    if (!programs.has(programKey(start.name, start.version))) return false;
    return !controls.isPaused(start.name) && !controls.isHeld(start);
  }

  controlsChanged(): void {
    this.#poll();
  }

  has(id: string): boolean {
    return this.#executions.has(id);
  }

  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#isDraining = false;
    this.#stopListening = this.#settings.journal.doorbell(() => this.#rung());
    this.#poll();
  }

  /**
   * Begins nothing more, and resolves when all leases are released. After `graceMs` the running assemblies
   * are abandoned.
   */
  async stop(graceMs: number): Promise<void> {
    if (!this.#isRunning) return;
    this.#isDraining = true;
    this.#stopListening?.();
    this.#pollTimer.clear();
    this.#newsTimer.clear();
    for (const [, execution] of this.#executions.entries()) execution.drain();
    if (this.size > 0) await this.#untilEmpty(graceMs);
    for (const [, execution] of this.#executions.entries()) execution.abandon('the worker was stopped');
    this.#beatTimer.clear();
    this.#isRunning = false;
    await this.#settings.journal.release(this.#settings.name);
  }

  /** Runs an assembly that this worker has started and leased in one call. */
  adopt(claimed: ClaimedAssembly, storeNow: number): void {
    this.#leaseEndsAt = Math.max(
      this.#leaseEndsAt,
      this.#settings.clock.now() + this.#settings.leaseMs / beatsPerLease,
    );
    this.#run(claimed, storeNow);
  }

  #untilEmpty(graceMs: number): Promise<void> {
    // Two calls of `stop` may wait at the same time.
    const other = this.#onEmpty;
    return new Promise((resolve) => {
      const done = () => {
        timer.clear();
        this.#onEmpty = undefined;
        resolve();
        other?.();
      };
      const timer = new Timer(this.#settings.clock, done);
      timer.setIn(graceMs);
      this.#onEmpty = done;
    });
  }

  #rung(): void {
    this.#poll();
    if (this.size > 0 && !this.#newsTimer.isSet) this.#newsTimer.setIn(newsEveryMs);
  }

  #poll(): void {
    if (!this.isRunning || this.#isPollWanted) return;
    this.#isPollWanted = true;
    afterMicrotasks(() => {
      this.#isPollWanted = false;
      void this.#claim();
    });
  }

  async #claim(): Promise<void> {
    const {
      journal,
      name: worker,
      leaseMs,
      concurrency,
      programs,
      controls,
      clock,
      onFailure,
    } = this.#settings;
    if (this.#isClaiming || !this.isRunning || this.#isAlone) return;
    const suspects = this.#suspects > 0;
    if (suspects && this.size > 0 && this.#mayWaitToBeAlone()) return;
    if (suspects && this.size > 0) {
      this.#suspects = 0;
      this.#ignoresSuspectsUntil = clock.now() + leaseMs;
      this.#poll();
      return;
    }
    const limit = suspects ? 1 : concurrency - this.size;
    const wanted = [...programs.values()].filter((program) => !controls.isPaused(program.name));
    if (limit <= 0 || wanted.length === 0) return;
    this.#isClaiming = true;
    const sentAt = clock.now();
    try {
      const claimed = await journal.claim({
        ...{ worker, leaseMs, limit, suspectDeaths, suspects },
        programs: wanted.map(({ name, version }) => ({ name, version })),
      });
      this.#isClaiming = false;
      this.#leaseEndsAt = sentAt + leaseMs;
      if (suspects && claimed.assemblies.length === 0) this.#ignoresSuspectsUntil = sentAt + idleMaxMs;
      const ignored = suspects || sentAt < this.#ignoresSuspectsUntil;
      this.#suspects = ignored ? 0 : claimed.suspects;
      if (this.#suspects > 0) this.#drainsSince ??= sentAt;
      else this.#drainsSince = undefined;
      this.#isAlone = suspects && claimed.assemblies.length > 0;
      for (const each of claimed.assemblies) this.#take(each, claimed.now);
      this.#plan(claimed.assemblies.length, limit, claimed.nextDueInMs, suspects);
    } catch (error) {
      this.#isClaiming = false;
      onFailure('claim', error);
      this.#pollTimer.setIn(idleMinMs);
    }
  }

  /**
   * True: the worker may still wait for its running assemblies to end, so that a suspect (an assembly with
   * which workers died) can run alone. It takes no other work meanwhile, and waits for up to `leaseMs`.
   */
  #mayWaitToBeAlone(): boolean {
    return this.#settings.clock.now() - (this.#drainsSince ?? 0) < this.#settings.leaseMs;
  }

  #plan(taken: number, limit: number, nextDueInMs = Infinity, wereSuspects: boolean): void {
    if (taken >= limit || wereSuspects || (this.#suspects > 0 && this.size === 0)) {
      this.#poll();
      return;
    }
    this.#idleMs = taken > 0 ? idleMinMs : Math.min(this.#idleMs * 2, idleMaxMs);
    this.#pollTimer.setIn(Math.max(0, Math.min(nextDueInMs, this.#idleMs)));
  }

  /**
   * Runs a leased assembly. A quarantined assembly is suspended instead. But if somebody has asked it to
   * stop, it runs, because its steps must be compensated.
   */
  #take(claimed: ClaimedAssembly, storeNow: number): void {
    const { controls, recorder, onFailure } = this.#settings;
    if (claimed.stop !== undefined || !controls.isHeld(claimed)) {
      this.#run(claimed, storeNow);
      return;
    }
    this.#isAlone = false;
    const { lease, revision } = claimed;
    const next = { kind: 'suspend', dueInMs: heldForMs, revision } as const;
    recorder
      .record({ kind: 'progress', lease, steps: [], next })
      .catch((error: unknown) => onFailure('quarantine', error));
  }

  #run(claimed: ClaimedAssembly, storeNow: number): void {
    const { programs, deathsMax } = this.#settings;
    const program = programs.get(programKey(claimed.name, claimed.version))!;
    this.#executions.get(claimed.id)?.abandon('it was leased again');
    const execution = new Execution(this.#host, program, claimed, storeNow);
    this.#executions.set(claimed.id, execution);
    if (!this.#beatTimer.isSet) this.#beatTimer.setIn(this.#settings.leaseMs / beatsPerLease);
    // This code may run inside a request. The deadline of that request must not apply to the program.
    withoutAmbient(() => {
      if (claimed.deaths >= deathsMax) {
        const message = `${claimed.deaths} workers have died with it since it last made progress`;
        void execution.park({ because: 'crashed', message, paths: [] });
      } else execution.start();
    });
  }

  #finished(execution: Execution, end: ExecutionEnd): void {
    if (this.#executions.get(execution.id) !== execution) return;
    this.#executions.delete(execution.id);
    const wasAlone = this.#isAlone;
    this.#isAlone = false;
    this.#settings.onEnd(execution.id, end);
    if (end.kind === 'left' && end.dueInMs !== undefined) this.#pollWithin(end.dueInMs);
    const wasFull = this.size === this.#settings.concurrency - 1;
    if (wasFull || wasAlone || (this.#suspects > 0 && this.size === 0)) this.#poll();
    if (this.size === 0) this.#onEmpty?.();
  }

  #pollWithin(ms: number): void {
    const at = this.#settings.clock.now() + ms;
    if (this.isRunning && (!this.#pollTimer.isSet || this.#pollTimer.at > at)) this.#pollTimer.setAt(at);
  }

  async #beat(): Promise<void> {
    const { journal, name, leaseMs, clock, onFailure } = this.#settings;
    this.#newsTimer.clear();
    if (this.size === 0) return;
    this.#beatTimer.setIn(leaseMs / beatsPerLease);
    const before = this.#executions.entries();
    const sentAt = clock.now();
    try {
      const { leased, changed } = await journal.heartbeat(name, leaseMs);
      this.#leaseEndsAt = sentAt + leaseMs;
      const mine = new Set(leased);
      for (const [id, execution] of before) {
        if (this.#executions.get(id) !== execution || mine.has(id)) continue;
        // The store does not list this lease any more.
        execution.abandon('another worker has taken over');
      }
      for (const { id, revision } of changed) {
        const execution = this.#executions.get(id);
        if (execution && revision > execution.revision) void execution.refresh();
      }
    } catch (error) {
      onFailure('heartbeat', error);
      if (clock.now() >= this.#leaseEndsAt)
        for (const [, execution] of before) execution.abandon('the lease has ended');
    }
  }
}
