import {
  assertStored,
  errorNote,
  type NewAssembly,
  type ProgressEntry,
  type ProgressResult,
  type StepRecord,
  type StopNote,
  type StoredSignal,
  type StoredStep,
} from '@holdfast/contracts';
import { Timer } from 'holdfast';
import { afterMicrotasks } from './after-microtasks.ts';
import { AskedStep, AttemptContext } from './asked-step.ts';
import {
  AmbiguousStepError,
  ProgramChangedError,
  SignalTimeoutError,
  StepAbortedError,
  StepFailedError,
} from './assembly-errors.ts';
import { type Check, checked } from './check.ts';
import { judgeAttempt } from './judge-attempt.ts';
import { Scope } from './program-scope.ts';
import { runAttempt } from './run-attempt.ts';
import type { ProgramOutcome, RunEnd, RunPort, StepRequest } from './run-port.ts';
import type { StepContext } from './step.ts';
import { fromStored, toStored } from './stored-value.ts';

export interface RunSettings {
  /** `collect`: begin no step, and only collect the `undo` functions of recorded steps. */
  readonly mode: 'forward' | 'collect';
  readonly records: readonly StoredStep[];
  /** True: an operator has accepted a changed program. Results are matched to steps by name only. */
  readonly lenient?: boolean;
}

/** During a replay, a program that waits longer than this for anything but a step counts as changed. */
const stallMs = 30_000;

/**
 * One run of a program from its beginning. Recorded results are replayed first, in their order and one at a
 * time; only then do new steps begin. A new result is given to the program at once, but no other step begins
 * before the result is stored. If all steps only wait, the run is suspended: its promises never settle and
 * are garbage collected.
 */
export class ProgramRun {
  readonly #port: RunPort;
  readonly #settings: RunSettings;
  readonly #records: Map<string, StoredStep>;
  /** Recorded results that the program has not been given yet, in their order. */
  readonly #replay: StoredStep[];
  readonly #asked = new Map<string, AskedStep>();
  readonly #everAsked: AskedStep[] = [];
  #held: AskedStep[] = [];
  readonly #completed: {
    readonly asked: AskedStep;
    readonly record: StepRecord;
    readonly isStored: boolean;
  }[] = [];
  readonly #unwritten = new Map<string, StepRecord>();
  #starts: NewAssembly[] = [];
  #commits = false;
  /** The path prefixes of `race` branches that have lost. */
  readonly #closedPrefixes: string[] = [];
  readonly #takenSignals = new Set<number>();
  #active = 0;
  #writes = 0;
  /** True while a transaction is in flight. No other result may be given before its result. */
  #isCommitting = false;
  #isScheduled = false;
  #isOver = false;
  #hasCaughtUp = false;
  #outcome: ProgramOutcome | undefined;
  #stop: StopNote | undefined;
  #isOutOfGrace = false;
  #stalledMs = 0;
  #lastGivenAt: number;
  readonly #quiet: Timer;
  readonly #grace: Timer;
  readonly #patience: Timer;

  constructor(port: RunPort, settings: RunSettings) {
    this.#port = port;
    this.#settings = settings;
    this.#records = new Map(settings.records.map((record) => [record.path, record]));
    this.#replay = settings.records
      .filter((record) => isSettled(record) && record.kind !== 'change')
      .sort((one, other) => one.order - other.order);
    for (const { signal } of settings.records) if (signal !== undefined) this.#takenSignals.add(signal);
    this.#lastGivenAt = port.acceptedAt;
    this.#quiet = new Timer(port.clock, () => this.#foundQuiet());
    this.#grace = new Timer(port.clock, () => {
      this.#isOutOfGrace = true;
      this.#wake();
    });
    this.#patience = new Timer(port.clock, () => this.patienceChanged());
  }

  start(program: (root: Scope) => unknown): void {
    this.patienceChanged();
    const root = new Scope('');
    new Promise((resolve) => resolve(program(root))).then(
      (value) => this.#ended({ ok: true, value }),
      (error: unknown) => this.#ended({ ok: false, error }),
    );
    this.#wake();
  }

  get lastGivenAt(): number {
    return this.#lastGivenAt;
  }

  /** True when all recorded results were given to the program. */
  get isLive(): boolean {
    return this.#replay.length === 0;
  }

  /**
   * The program asks for a step. The promise settles with the result of the step. If the run ends before
   * that, the promise never settles.
   */
  ask(scope: Scope, name: string, request: StepRequest, rawPath?: string): Promise<unknown> {
    if (scope.isClosed || this.#isOver) return new Promise(() => {});
    if (scope.underWay.has(name)) return Promise.reject(new AmbiguousStepError(scope.prefix + name));
    const path = rawPath ?? scope.nextPath(name);
    const record = this.#records.get(path);
    const asked = new AskedStep(path, name, scope, request, record);
    scope.underWay.add(name);
    this.#asked.set(path, asked);
    this.#everAsked.push(asked);
    this.#wake();
    const promise = new Promise((resolve, reject) => {
      asked.resolve = resolve;
      asked.reject = reject;
    });
    // If the program does not await this step, its rejection must not end the process.
    promise.catch(() => {});
    return promise;
  }

  /**
   * Returns true if the change `path` has a record. Also returns true if the program has asked for all
   * recorded steps: in this case the program reaches this call for the first time, and the change is
   * recorded.
   */
  hasChanged(path: string): boolean {
    if (this.#records.has(path)) return true;
    if (!this.isLive || this.#settings.mode === 'collect' || this.#firstNotAsked()) return false;
    const record: StepRecord = { path, kind: 'change', state: 'done', attempts: 0, ...this.#stamp() };
    this.#records.set(path, record);
    this.#unwritten.set(path, record);
    return true;
  }

  /** Closes the scopes of the branches that lost a race, and aborts their running steps. */
  close(scopes: readonly Scope[]): void {
    for (const scope of scopes) {
      scope.close();
      this.#closedPrefixes.push(scope.prefix);
    }
    for (const asked of [...this.#asked.values()].filter((each) => each.scope.isClosed)) {
      if (asked.state === 'active') {
        asked.abort(new StepAbortedError('another branch has won the race'));
        continue;
      }
      asked.timer?.clear();
      this.#asked.delete(asked.path);
    }
    this.#held = this.#held.filter(({ scope }) => !scope.isClosed);
  }

  signalsCame(): void {
    for (const asked of this.#asked.values()) if (asked.state === 'waiting') this.#takeSignal(asked);
    this.#wake();
  }

  patienceChanged(): void {
    if (this.#isOver || this.#settings.mode === 'collect') return;
    const endsAt = this.#port.patienceEndsAt();
    if (endsAt === Infinity) {
      this.#patience.clear();
      return;
    }
    if (endsAt > this.#port.clock.now()) {
      this.#patience.setAt(endsAt);
      return;
    }
    // While recorded results are replayed, do not stop yet: the program may need no new step to end.
    if (this.#hasCaughtUp) this.stop(outOfPatience('the patience of the customer is over'));
  }

  /** Aborts the running steps. The run ends when they have settled, or after `graceMs`. */
  stop(stop: StopNote): void {
    if (this.#stop || this.#isOver) return;
    this.#stop = stop;
    for (const asked of this.#asked.values()) asked.abort(new StepAbortedError(stop.because));
    this.#grace.setIn(this.#port.graceMs);
    this.#wake();
  }

  drain(): void {
    this.#wake();
  }

  /** Drops the run: it writes nothing more, and the signals of its steps are aborted. */
  abandon(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const timer of [this.#quiet, this.#grace, this.#patience]) timer.clear();
    for (const asked of this.#asked.values()) {
      asked.timer?.clear();
      asked.abort(new StepAbortedError(why));
    }
    this.#asked.clear();
    this.#held = [];
  }

  #finish(how: RunEnd): void {
    this.abandon(how.kind);
    this.#port.over(how);
  }

  #ended(outcome: ProgramOutcome): void {
    this.#outcome = outcome;
    this.#wake();
  }

  #wake(): void {
    if (this.#isScheduled || this.#isOver) return;
    this.#isScheduled = true;
    afterMicrotasks(() => {
      this.#isScheduled = false;
      this.#turn();
    });
  }

  /** Gives the program at most one result, so that it reacts to each before the next. */
  #turn(): void {
    if (this.#isOver || this.#giveRecorded() || !this.#isCaughtUp()) return;
    if (this.#settings.mode === 'collect') {
      this.#finish({ kind: 'collected', steps: this.#everAsked });
      return;
    }
    if (this.#isCommitting) return;
    const next = this.#completed.shift();
    if (next) {
      this.#giveNew(next);
      this.#wake();
      return;
    }
    if (this.#stop) {
      this.#finishStop();
      return;
    }
    this.#beginNew();
    if (this.#writes > 0 || this.#isOver || this.#stop) return;
    const isQuiet = this.#active === 0 && this.#completed.length === 0;
    if (isQuiet && this.#outcome && this.#asked.size === 0)
      return void this.#write(this.#port.endEntry(this.#outcome), 'ended');
    if (isQuiet && this.#port.isDraining()) return void this.#write({ next: { kind: 'return' } }, 'returned');
    const restMs = isQuiet && this.#held.length === 0 ? this.#restMs() : undefined;
    if (restMs !== undefined)
      return void this.#write(this.#port.suspendEntry(restMs < Infinity ? restMs : undefined), 'suspended');
    if (this.#hasUnwritten) return void this.#write({});
    this.#beginHeld();
  }

  get #hasUnwritten(): boolean {
    return this.#unwritten.size > 0 || this.#starts.length > 0;
  }

  /**
   * Gives the next recorded result to the program, or waits until the program asks for that step. Returns
   * false if all recorded results were given.
   */
  #giveRecorded(): boolean {
    if (this.isLive) return false;
    const index = this.#settings.lenient ? this.#replay.findIndex(({ path }) => this.#asked.has(path)) : 0;
    if (index < 0) {
      this.#replay.length = 0;
      return false;
    }
    const record = this.#replay[index]!;
    const asked = this.#asked.get(record.path);
    if (!asked && this.#isInClosedScope(record.path)) {
      this.#replay.shift();
      this.#wake();
      return true;
    }
    if (!asked) {
      if (this.#outcome) this.#changed(record);
      else if (!this.#quiet.isSet) this.#quiet.setIn(this.#port.quietMs);
      return true;
    }
    this.#quiet.clear();
    this.#stalledMs = 0;
    if (asked.request.kind !== record.kind) {
      this.#changed(
        record,
        `step ${record.path} was a ${record.kind} before, and is a ${asked.request.kind} now`,
      );
      return true;
    }
    if (index === 0) this.#replay.shift();
    else this.#replay.splice(index, 1);
    this.#give(asked, record);
    this.#wake();
    return true;
  }

  /**
   * Returns false while the program has not asked for each step that is recorded as unfinished. A first
   * attempt of a step without `once` leaves no record until it ends, so this method does not wait for such a
   * step.
   */
  #isCaughtUp(): boolean {
    if (this.#hasCaughtUp || this.#settings.mode === 'collect' || this.#settings.lenient) {
      this.#hasCaughtUp = true;
      return true;
    }
    const missing = this.#firstNotAsked();
    if (missing) {
      if (this.#outcome) this.#changed(missing);
      else if (!this.#quiet.isSet) this.#quiet.setIn(this.#port.quietMs);
      return false;
    }
    this.#quiet.clear();
    this.#hasCaughtUp = true;
    this.patienceChanged();
    return true;
  }

  #firstNotAsked(): StoredStep | undefined {
    if (this.#hasCaughtUp) return undefined;
    for (const record of this.#records.values())
      if (!isSettled(record) && !this.#asked.has(record.path) && !this.#isInClosedScope(record.path))
        return record;
    return undefined;
  }

  /**
   * Called when the program has not asked for the next recorded step for `quietMs`. The program may count as
   * changed.
   */
  #foundQuiet(): void {
    if (this.#isOver) return;
    const missing = this.#replay[0] ?? this.#firstNotAsked();
    if (!missing || this.#asked.has(missing.path)) {
      this.#wake();
      return;
    }
    this.#stalledMs += this.#port.quietMs;
    if (this.#asked.size > 0 || this.#outcome || this.#stalledMs >= stallMs) {
      this.#changed(missing);
      return;
    }
    this.#quiet.setIn(this.#port.quietMs);
  }

  #changed({ path }: StoredStep, what = this.#whatChanged(path)): void {
    this.#finish({ kind: 'changed', error: new ProgramChangedError(this.#port.program, path, what) });
  }

  #whatChanged(path: string): string {
    const other = [...this.#asked.keys()][0];
    const was = this.#replay.some((record) => record.path === path) ? 'was done before' : 'was under way';
    if (other === undefined) {
      return this.#outcome
        ? `step ${path} ${was}, but the program ended without it`
        : `step ${path} ${was}, but the program waits for something that is not a step`;
    }
    if (this.#records.has(other))
      return `step ${other} came after ${path} before, but the program asks for it first`;
    return `step ${path} ${was}, but the program asks for ${other} in its place`;
  }

  #isInClosedScope(path: string): boolean {
    // The branch has lost its race, so the program will not ask for its steps any more.
    return this.#closedPrefixes.some((prefix) => path.startsWith(prefix));
  }

  #give(asked: AskedStep, record: StepRecord | StoredStep): void {
    asked.timer?.clear();
    this.#asked.delete(asked.path);
    asked.scope.underWay.delete(asked.name);
    if (asked.scope.isClosed) return;
    this.#lastGivenAt = Math.max(this.#lastGivenAt, record.at);
    if (record.state === 'done') asked.resolve(fromStored(record.result));
    else {
      const because = record.because ?? 'not_retryable';
      asked.reject(new StepFailedError(asked.path, because, record.error, record.story ?? [], asked.error));
    }
  }

  #giveNew({ asked, record, isStored }: { asked: AskedStep; record: StepRecord; isStored: boolean }): void {
    // Order numbers say in which order the program got the results, so they are assigned here.
    const given = isStored ? record : { ...record, ...this.#stamp() };
    if (!isStored) this.#unwritten.set(given.path, given);
    this.#records.set(given.path, given);
    if (asked.request.pivot && given.state === 'done') this.#commits = true;
    this.#give(asked, given);
  }

  /** Waits begin at once. Other steps have effects, so they are held until all records are written. */
  #beginNew(): void {
    for (const asked of this.#asked.values()) {
      if (asked.state !== 'new') continue;
      if (!asked.request.fn && !asked.request.transaction) {
        this.#beginWait(asked);
      } else if (asked.record?.state === 'retrying') {
        this.#wait(asked, this.#inMs(asked.record.dueAt));
        asked.previousDelayMs = asked.story.at(-1)?.delayMs ?? 0;
      } else {
        asked.state = 'held';
        this.#held.push(asked);
      }
      if (this.#stop) return;
    }
  }

  #beginHeld(): void {
    if (this.#held.length === 0 || this.#port.isDraining()) return;
    if (this.#port.patienceEndsAt() <= this.#port.clock.now()) {
      this.stop(outOfPatience(`no patience is left for step ${this.#held[0]!.path}`));
      return;
    }
    const held = this.#held;
    this.#held = [];
    for (const asked of held) {
      if (asked.request.kind !== 'transaction') void this.#attempt(asked);
      else if (this.#isCommitting) this.#held.push(asked);
      else void this.#commit(asked);
    }
  }

  #beginWait(asked: AskedStep): void {
    const { request, record, path } = asked;
    const { kind, because, start } = request;
    const leftMs = this.#port.patienceEndsAt() - this.#port.clock.now();
    if (record) this.#wait(asked, record.dueAt === undefined ? Infinity : this.#inMs(record.dueAt));
    else {
      const dueInMs = Math.max(0, request.dueInMs?.(this.#port.storeNow()) ?? Infinity);
      if (kind === 'sleep' && dueInMs > leftMs) {
        this.stop(outOfPatience(`step ${path} would sleep longer than the customer waits`));
        return;
      }
      this.#unwritten.set(path, {
        ...{ path, kind, state: 'waiting', attempts: 0, because, ...this.#stamp() },
        ...(dueInMs < Infinity && { dueInMs }),
      });
      if (start) this.#starts.push(start(`${this.#port.id}/${path}`, leftMs));
      this.#wait(asked, dueInMs);
    }
    this.#takeSignal(asked);
  }

  #wait(asked: AskedStep, ms: number): void {
    asked.state = 'waiting';
    asked.readyAt = this.#port.clock.now() + ms;
    if (ms === Infinity) return;
    asked.timer ??= new Timer(this.#port.clock, () => this.#timeHasCome(asked));
    asked.timer.setAt(asked.readyAt);
  }

  /** Called at the end of a sleep or a backoff, or when a wait for a signal times out. */
  #timeHasCome(asked: AskedStep): void {
    if (this.#isOver || asked.state !== 'waiting') return;
    const { kind } = asked.request;
    if (kind === 'wait') return void this.#timeOut(asked, asked.signal!);
    if (kind === 'sleep') this.#complete(asked, { state: 'done' });
    else {
      asked.state = 'held';
      this.#held.push(asked);
    }
    this.#wake();
  }

  async #timeOut(asked: AskedStep, signal: string): Promise<void> {
    // Read the store once more: a signal that arrived before the timeout still counts.
    await this.#port.refresh();
    this.#takeSignal(asked);
    if (asked.state !== 'waiting') return;
    asked.error = new SignalTimeoutError(signal);
    this.#fail(asked, 'patience_too_short');
    this.#wake();
  }

  #takeSignal(asked: AskedStep): void {
    const { signal: name, request } = asked;
    if (name === undefined || asked.state !== 'waiting') return;
    const dueAt = asked.record?.dueAt ?? Infinity;
    const signal = this.#port
      .signals()
      .find((each) => each.name === name && each.at <= dueAt && !this.#takenSignals.has(each.number));
    if (!signal) return;
    this.#takenSignals.add(signal.number);
    void this.#readSignal(asked, signal, request.read);
  }

  async #readSignal(
    asked: AskedStep,
    { number, payload }: StoredSignal,
    read: StepRequest['read'],
  ): Promise<void> {
    asked.state = 'active';
    this.#active++;
    try {
      let result = payload;
      if (read) result = toStored(read(payload), 'result');
      else if (asked.request.check) {
        const value = await checked(asked.path, asked.request.check as Check, fromStored(payload));
        result = toStored(value, 'payload');
      }
      this.#complete(asked, { state: 'done', result, signal: number });
    } catch (error) {
      asked.error = error;
      this.#fail(asked, error instanceof StepFailedError ? error.because : 'not_retryable', number);
    } finally {
      this.#active--;
      this.#wake();
    }
  }

  async #attempt(asked: AskedStep): Promise<void> {
    const { request } = asked;
    asked.state = 'active';
    this.#active++;
    try {
      const isUnknown =
        request.once && asked.record?.state === 'begun' && asked.attempts === asked.record.attempts;
      if (isUnknown && !request.whenUnknown) return this.#fail(asked, 'outcome_unknown');
      asked.attempts++;
      if (request.once && !isUnknown && !(await this.#recordBeginning(asked))) return;
      await this.#call(asked, isUnknown ? request.whenUnknown! : request.fn!);
    } finally {
      this.#active--;
      this.#wake();
    }
  }

  async #call(asked: AskedStep, fn: (context: StepContext) => unknown): Promise<void> {
    const { request, path } = asked;
    const { clock, limits } = this.#port;
    const startedAt = clock.now();
    const context = this.#contextOf(asked);
    const patienceEndsAt = this.#port.patienceEndsAt();
    const abort = (reason: unknown) => asked.abort(reason);
    try {
      const { timeoutMs, check } = request;
      const value = await runAttempt({ path, fn, context, patienceEndsAt, timeoutMs, check, clock, abort });
      const result = toStored(value, `result of ${path}`);
      assertStored(`result of ${path}`, result, limits);
      this.#complete(asked, { state: 'done', result });
    } catch (error) {
      this.#attemptFailed(asked, error, startedAt);
    }
  }

  /** For a step with `once`: records that an attempt begins, before it begins. */
  async #recordBeginning(asked: AskedStep): Promise<boolean> {
    const { path, attempts } = asked;
    const step: StepRecord = { path, kind: 'run', state: 'begun', attempts, ...this.#stamp() };
    const result = await this.#recordNow({ steps: [step] });
    return result?.kind === 'took' && !this.#isOver && !this.#stop;
  }

  async #commit(asked: AskedStep): Promise<void> {
    const { path, request } = asked;
    asked.state = 'active';
    asked.attempts++;
    this.#active++;
    this.#isCommitting = true;
    const startedAt = this.#port.clock.now();
    const context = this.#contextOf(asked);
    const step: StepRecord = {
      path,
      kind: 'transaction',
      state: 'done',
      attempts: asked.attempts,
      story: asked.story,
      ...this.#stamp(),
    };
    const run = (tx: unknown) => {
      const { transaction, check } = request;
      const value = whenSettled(transaction!(tx, context), (given) =>
        check ? checked(path, check as Check, given) : given,
      );
      return whenSettled(value, (given) => toStored(given, `result of ${path}`));
    };
    try {
      const result = await this.#recordNow({
        steps: [],
        transaction: { step, run },
        ...(request.pivot && { commits: true }),
      });
      if (!result || this.#isOver) return;
      if (result.kind === 'commit_failed') this.#attemptFailed(asked, result.error, startedAt);
      else if (result.kind === 'took')
        // The transaction already has its order number. Results that arrived meanwhile get higher numbers, so
        // the program is given this result first.
        this.#completed.unshift({ asked, record: { ...step, result: result.result }, isStored: true });
    } finally {
      this.#active--;
      this.#isCommitting = false;
      this.#wake();
    }
  }

  #attemptFailed(asked: AskedStep, error: unknown, startedAt: number): void {
    if (this.#isOver || asked.scope.isClosed || this.#stop) {
      this.#settledTooLate(asked);
      return;
    }
    const { request, attempts, story, previousDelayMs } = asked;
    const { clock, worker } = this.#port;
    asked.error = error;
    const verdict = judgeAttempt({
      ...{
        policy: request.policy!,
        error,
        attempt: attempts,
        startedAt,
        previousDelayMs,
        story,
        worker,
        clock,
      },
      patienceEndsAt: this.#port.patienceEndsAt(),
      idempotent: !request.once,
    });
    asked.story = verdict.story;
    if (verdict.kind === 'retry') {
      asked.previousDelayMs = verdict.delayMs;
      const { path } = asked;
      this.#unwritten.set(path, {
        ...{
          path,
          kind: request.kind,
          state: 'retrying',
          attempts,
          dueInMs: verdict.delayMs,
          error: verdict.note,
        },
        ...{ story: verdict.story, ...this.#stamp() },
      });
      this.#wait(asked, verdict.delayMs);
      return;
    }
    if (verdict.because !== 'patience_too_short') {
      this.#fail(asked, verdict.because);
      return;
    }
    // The step may have had its effect, so it is compensated as a step with an unknown outcome.
    this.#noteUnknown(asked);
    this.stop(outOfPatience(`step ${asked.path} can not be done in time: ${verdict.note.message}`));
  }

  /** An attempt failed after the stop, or in a branch that lost a race: its outcome is unknown. */
  #settledTooLate(asked: AskedStep): void {
    if (this.#isOver) return;
    this.#noteUnknown(asked);
    asked.timer?.clear();
    this.#asked.delete(asked.path);
  }

  #noteUnknown(asked: AskedStep): void {
    const { path, attempts, story, request } = asked;
    if (request.undo)
      this.#unwritten.set(path, {
        path,
        kind: request.kind,
        state: 'begun',
        attempts,
        story,
        ...this.#stamp(),
      });
  }

  #complete(asked: AskedStep, done: Pick<StepRecord, 'state' | 'result' | 'signal'>): void {
    if (this.#isOver) return;
    asked.state = 'completed';
    const { path, request, attempts, story } = asked;
    const record = {
      path,
      kind: request.kind,
      attempts,
      order: 0,
      at: 0,
      ...(story.length > 0 && { story }),
      ...done,
    };
    this.#completed.push({ asked, record, isStored: false });
  }

  #fail(asked: AskedStep, because: string, signal?: number): void {
    if (this.#isOver) return;
    asked.state = 'completed';
    const { path, request, attempts, story, error } = asked;
    const note = error === undefined ? undefined : errorNote(error);
    this.#completed.push({
      asked,
      record: {
        path,
        kind: request.kind,
        state: 'failed',
        order: 0,
        at: 0,
        attempts,
        story,
        because,
        error: note,
        signal,
      },
      isStored: false,
    });
  }

  #finishStop(): void {
    if (this.#writes > 0 || (this.#active > 0 && !this.#isOutOfGrace)) return;
    for (const asked of this.#asked.values()) if (asked.state === 'active') this.#noteUnknown(asked);
    void this.#write({ stop: this.#stop! }, 'stopped');
  }

  /** Ms until the next step can continue. `undefined`: the run must stay in memory. */
  #restMs(): number | undefined {
    if (this.#asked.size === 0) return undefined;
    let readyAt = this.#port.patienceEndsAt();
    let waitsForSignal = false;
    for (const asked of this.#asked.values()) {
      if (asked.state !== 'waiting') return undefined;
      readyAt = Math.min(readyAt, asked.readyAt);
      waitsForSignal ||= asked.signal !== undefined;
    }
    const restMs = readyAt - this.#port.clock.now();
    if (restMs <= 0) return undefined;
    return waitsForSignal || restMs > this.#port.holdMs ? restMs : undefined;
  }

  async #write(
    more: Omit<ProgressEntry, 'kind' | 'lease' | 'steps'>,
    end?: 'ended' | 'suspended' | 'returned' | 'stopped',
  ): Promise<void> {
    const steps = [...this.#unwritten.values()];
    const notices = this.#port.withRecords(steps);
    let starts = more.starts ?? notices;
    if (this.#starts.length > 0 || (more.starts && notices.length > 0))
      starts = [...this.#starts, ...(more.starts ?? []), ...notices];
    this.#unwritten.clear();
    this.#starts = [];
    const commits = this.#commits;
    const result = await this.#recordNow({ ...more, steps, starts, commits });
    if (!result || this.#isOver) return;
    this.#commits = false;
    if (end === 'stopped') this.#finish({ kind: 'stopped', stop: this.#stop! });
    else if (end) this.#finish({ kind: end });
    else this.#wake();
  }

  /** Writes an entry. Ends the run if the lease is lost or the store does not answer. */
  async #recordNow(entry: Omit<ProgressEntry, 'kind' | 'lease'>): Promise<ProgressResult | undefined> {
    this.#writes++;
    try {
      const result = await this.#port.record(entry).finally(() => this.#writes--);
      if (result.kind !== 'lease_lost') return result;
    } catch {
      // The recorder has retried for the whole lease time. The next worker continues from the stored records.
    }
    if (!this.#isOver) this.#finish({ kind: 'lost' });
    return undefined;
  }

  #contextOf(asked: AskedStep): StepContext {
    const { clock, id } = this.#port;
    const patienceLeftMs = Math.max(0, this.#port.patienceEndsAt() - clock.now());
    return new AttemptContext(asked, `${id}/${asked.path}`, patienceLeftMs);
  }

  #inMs(dueAt: number | undefined): number {
    return Math.max(0, (dueAt ?? 0) - this.#port.storeNow());
  }

  #stamp(): { order: number; at: number } {
    return { order: this.#port.nextOrder(), at: Math.floor(this.#port.storeNow()) };
  }
}

function isSettled({ state }: StepRecord | StoredStep): boolean {
  return state === 'done' || state === 'failed';
}

function outOfPatience(message: string): StopNote {
  return { because: 'patience_too_short', message };
}

/** Calls `then` with the value, or with the result of the promise. Stays synchronous for a plain value. */
function whenSettled<T>(value: unknown, then: (value: unknown) => T | Promise<T>): T | Promise<T> {
  return value instanceof Promise ? value.then(then) : then(value);
}
