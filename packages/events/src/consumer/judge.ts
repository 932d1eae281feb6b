import {
  type AttemptRecord,
  continueStory,
  type ErrorNote,
  errorNote,
  messageMax,
  type Settlement,
} from '@holdfast/contracts';
import { type Clock, decide, type History, type Judgement, markOf, type Policy } from 'holdfast';
import { type Blame, type Fault, outageMaxMs } from './blame.ts';
import { isRefusal } from './consumer-policy.ts';
import type { DependencyGate } from './dependency-gate.ts';
import { CrashedError, PoisonError } from './event-errors.ts';
import { isHandlerResult } from './handler-result.ts';
import { redaction } from './redaction.ts';
import type { Task } from './task.ts';
import type { TopicControlState } from './topic-control-state.ts';

export interface JudgeSettings {
  readonly policy: Policy;
  readonly clock: Clock;
  readonly gate: DependencyGate;
  readonly blame: Blame;
  readonly controls: TopicControlState;
  /** The name of this consumer, which is different for each start. It is stored in attempt records. */
  readonly owner: string;
  /**
   * The handler names that are written as marks of handled events. `ofCommits` is for events whose handler returned
   * `commit(…)`, `ofAll` for all handled events. `undefined`: no mark is written.
   */
  readonly marks: {
    readonly ofCommits: readonly string[] | undefined;
    readonly ofAll: readonly string[] | undefined;
  };
  readonly redact: readonly string[];
  readonly deathsMax: number;
  readonly snoozesMax: number;
  readonly holdForMs: number;
  readonly parkedKeys: 'release' | 'block';
  readonly keepParkedMs: number | undefined;
}

const snoozeMaxMs = 24 * 60 * 60 * 1000;

/**
 * Decides what happens to an event before and after its handler is called. `decide` of the package `holdfast` decides
 * whether and when to retry. The judge gives `decide` the history of the event, and turns its answer into a settlement.
 */
export class Judge<Tx> {
  readonly #settings: JudgeSettings;

  constructor(settings: JudgeSettings) {
    this.#settings = settings;
  }

  /** Returns the settlement of an event that must not be handled. `undefined`: the handler must be called. */
  beforeHandler(task: Task, now: number): Settlement<Tx> | undefined {
    const { controls, deathsMax } = this.#settings;
    const { delivery } = task;
    if (task.isRepeated) return { lease: delivery.lease, kind: 'ack' };
    if (!controls.isEmpty) {
      if (controls.skips(delivery.id)) return this.#park(task, 'skipped', delivery.lastError);
      const to = controls.destinationOf(delivery.type);
      if (to !== undefined) return { lease: delivery.lease, kind: 'reroute', to };
    }
    if (delivery.deaths >= deathsMax) {
      return this.#park(task, 'crashed', errorNote(new CrashedError(delivery.deaths)));
    }
    // The customer does not wait for this event any more, so park it. The parked event keeps its last error.
    if (now >= task.patienceEndsAt) return this.#park(task, 'patience_too_short', delivery.lastError);
    return undefined;
  }

  /** Returns the settlement of an event whose handler has returned `given`. */
  answered(task: Task, given: unknown): Settlement<Tx> {
    const { lease } = task.delivery;
    const { ofAll, ofCommits } = this.#settings.marks;
    if (given === undefined || !isHandlerResult(given))
      return ofAll ? { lease, kind: 'ack', marks: ofAll } : { lease, kind: 'ack' };
    switch (given.kind) {
      case 'done':
        return this.answered(task, undefined);
      case 'commit': {
        const acked = { lease, kind: 'ack', commit: given.commit as (tx: Tx) => void } as const;
        return ofCommits ? { ...acked, marks: ofCommits } : acked;
      }
      case 'retry':
        return this.failed(task, given.error, true);
      case 'snooze':
        return this.#snoozed(task, given.delayMs);
      case 'park': {
        const error = given.error === undefined ? undefined : this.#noteOf(task, given.error);
        const note = this.#attempt(task, this.#settings.clock.now(), 'fatal', error, 'park', given.because);
        return this.#park(task, given.because, error, note);
      }
      case 'discard':
        return { lease, kind: 'discard', because: given.because };
      case 'reroute':
        return { lease, kind: 'reroute', to: given.to };
    }
  }

  /**
   * Returns the settlement of an event whose handler or commit has thrown `error`. `insisted`: the handler returned
   * `retry(error)`.
   */
  failed(task: Task, error: unknown, insisted = false): Settlement<Tx> {
    const { policy, blame, gate, clock } = this.#settings;
    const now = clock.now();
    const { plan } = policy;
    const { delivery } = task;
    const { judged, isRefused } = this.#classify(error, insisted);
    const retryVeto = plan.killSwitch.isOn ? 'kill_switch' : undefined;
    const fault = blame.of(task, now, this.#aloneMaxMs(task));
    const isUncalled = isRefused && fault.failedDependencies.length === 0 && gate.room(now) === 0;
    const isFree = isUncalled || (!fault.isOwn && fault.isDependencyDown);
    if (isFree && isTemporary(judged) && !retryVeto) {
      return this.#giveBack(task, now, error, judged, fault);
    }
    blame.remember(task, now, fault);
    const attempt = task.attempt + fault.uncounted;
    const isSpared = isRefused || (!fault.isOwn && plan.attempts > 1 && attempt >= plan.attempts);
    const isPutOff = isSpared && delivery.snoozes < this.#settings.snoozesMax;
    const history: History = {
      // If the call was refused, or the dependency fails for all events, do not use up the last attempt of this event.
      attempt: isPutOff ? Math.min(attempt, plan.attempts - 1) : attempt,
      previousDelayMs: delivery.nextDelayMs ?? 0,
      patienceEndsAt: task.patienceEndsAt,
      idempotent: true,
      retryVeto,
    };
    const reopensAt = gate.reopensAt(now);
    const verdict = decide(plan, history, judged, {
      now,
      roll: plan.random(),
      tokens: 1,
      expectedAttemptMs: 0,
      // If an operator holds a breaker open, nobody knows when the breaker will admit calls. Retry with the usual delay
      // instead of parking the event.
      admitsAt: reopensAt < Infinity ? reopensAt : now,
    });
    if (verdict.kind === 'retry') {
      if (isPutOff) return { lease: delivery.lease, kind: 'snooze', delayMs: verdict.delayMs };
      return this.#retry(task, error, now, judged, verdict.delayMs, fault);
    }
    const stop =
      judged === poison ? 'poison' : verdict.kind === 'give_up' ? verdict.because : 'not_retryable';
    const note = this.#noteOf(task, error);
    return this.#park(
      task,
      stop,
      note,
      this.#attempt(task, now, judged.class, note, 'park', stop, fault),
      fault,
    );
  }

  /**
   * Gives the event back to the store, because it failed while a dependency is down. Neither an attempt nor a snooze is
   * counted, and later events of its key keep waiting.
   */
  #giveBack(task: Task, now: number, error: unknown, judged: Judgement, fault: Fault): Settlement<Tx> {
    const note = this.#noteOf(task, error);
    task.returnedFor = note;
    const lastUncounted = this.#attempt(task, now, judged.class, note, 'retry', judged.class, fault);
    this.#settings.blame.remember(task, now, fault, lastUncounted);
    return { lease: task.delivery.lease, kind: 'return' };
  }

  /**
   * Returns for how long this event must be the only one that fails, until the event itself is taken for the cause and
   * not a dependency. For an event with a key and attempts left, this is at most `holdFor`: after that time the failure
   * counts as an attempt, and later events of the key need not wait.
   */
  #aloneMaxMs({ key, attempt }: Task): number {
    const { policy, holdForMs } = this.#settings;
    const mayLetGo = key !== undefined && attempt < policy.plan.attempts - 1;
    return mayLetGo ? Math.min(holdForMs, outageMaxMs) : outageMaxMs;
  }

  #classify(error: unknown, insisted: boolean): { readonly judged: Judgement; readonly isRefused: boolean } {
    try {
      const judged = error instanceof PoisonError ? poison : this.#judgement(error, insisted);
      return { judged, isRefused: isRefusal(error) };
    } catch {
      // A property of the error throws when it is read. The event must be settled nevertheless, so treat it as an
      // unknown error.
      return { judged: { class: insisted ? 'transient' : 'fatal' }, isRefused: false };
    }
  }

  #judgement(error: unknown, insisted: boolean): Judgement {
    const { plan } = this.#settings.policy;
    const answer = plan.classify({ ok: false, error }, plan.clock.epochMs) ?? 'fatal';
    const judged = typeof answer === 'object' ? answer : { class: answer };
    const isOverruled = insisted && judged.class === 'fatal' && markOf(error) === undefined;
    return isOverruled ? { ...judged, class: 'transient' } : judged;
  }

  #retry(
    task: Task,
    error: unknown,
    now: number,
    judged: Judgement,
    delayMs: number,
    fault: Fault,
  ): Settlement<Tx> {
    const { clock, holdForMs } = this.#settings;
    const { delivery } = task;
    const note = this.#noteOf(task, error);
    const attempt = this.#attempt(task, now, judged.class, note, 'retry', judged.class, fault, delayMs);
    const story = continueStory(storyWith(task, fault), attempt);
    const settlement = { lease: delivery.lease, kind: 'retry', delayMs, error: note, story } as const;
    const lets = delivery.key !== undefined && clock.epochMs() - delivery.firstSeenAt + delayMs > holdForMs;
    return lets ? { ...settlement, holdsKey: false } : settlement;
  }

  #snoozed(task: Task, delayMs: number): Settlement<Tx> {
    const { lease, snoozes } = task.delivery;
    if (snoozes < this.#settings.snoozesMax) {
      return { lease, kind: 'snooze', delayMs: Math.min(delayMs, snoozeMaxMs) };
    }
    return this.failed(task, new Error(`it was put off ${snoozes} times, and again`), true);
  }

  #park(
    task: Task,
    stop: string,
    error: ErrorNote | undefined,
    attempt?: AttemptRecord,
    fault?: Fault,
  ): Settlement<Tx> {
    const { keepParkedMs, parkedKeys } = this.#settings;
    const { lease, key } = task.delivery;
    const story = storyWith(task, fault);
    return {
      lease,
      kind: 'park',
      // A handler may give a reason of any length, and parked events are grouped by it. So the reason is cut.
      stop: stop.slice(0, messageMax),
      story: attempt ? continueStory(story, attempt) : story,
      ...(error && { error }),
      ...(keepParkedMs !== undefined && { keepMs: keepParkedMs }),
      ...(parkedKeys === 'block' && key !== undefined && { holdsKey: true }),
    };
  }

  #noteOf(task: Task, error: unknown): ErrorNote {
    return errorNote(error, redaction(this.#settings.redact, task.delivery));
  }

  #attempt(
    task: Task,
    now: number,
    its: AttemptRecord['class'],
    error: ErrorNote | undefined,
    verdict: AttemptRecord['verdict'],
    because: string,
    fault?: Fault,
    delayMs?: number,
  ): AttemptRecord {
    const { clock, owner } = this.#settings;
    return {
      attempt: task.attempt + (fault?.uncounted ?? 0),
      at: clock.epochMs(),
      tookMs: Math.round(now - task.startedAt),
      class: its,
      errorType: error?.type ?? because,
      errorMessage: error?.message ?? '',
      verdict,
      because: because.slice(0, messageMax),
      ...(delayMs !== undefined && { delayMs }),
      owner,
    };
  }
}

const poison: Judgement = { class: 'fatal' };

/** True if a retry may succeed. */
function isTemporary({ class: its, retryNever }: Judgement): boolean {
  return (its === 'transient' || its === 'throttled') && !retryNever;
}

/** Returns the stored attempt records. If an earlier failure counts as an attempt only now, its record is added. */
function storyWith({ delivery }: Task, fault: Fault | undefined): readonly AttemptRecord[] {
  return fault?.lastUncounted ? continueStory(delivery.story, fault.lastUncounted) : delivery.story;
}
