import {
  type AttemptRecord,
  continueStory,
  type ErrorNote,
  errorNote,
  isRefusal,
  messageMax,
  type Settlement,
} from '@holdfast/contracts';
import { type Clock, decide, type History, type Judgement, markOf, type Policy } from 'holdfast';
import { type Blame, type Fault, outageMaxMs } from './blame.ts';
import { isBreakerOpen } from './consumer-policy.ts';
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
  readonly name: string;
  /** The name of this consumer in attempt records. It is different after every start. */
  readonly owner: string;
  /**
   * The handler names that the ledger stores with a handled event, so that the event is not handled twice.
   * `ofCommits`: if the handler returned `commit(…)`. `ofAll`: for all other successful events.
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
 * The shortest and longest delay (before jitter) of an event whose calls are refused by a breaker that an
 * operator forced open.
 */
const shutOutMinMs = 1000;
const shutOutMaxMs = 60_000;

/**
 * Decides what happens to an event before and after its handler is called. The function `decide` of the core
 * decides whether and when to retry.
 */
export class Judge<Tx> {
  readonly #settings: JudgeSettings;

  constructor(settings: JudgeSettings) {
    this.#settings = settings;
  }

  /** Returns the settlement of an event whose handler must not be called. `undefined`: call the handler. */
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
    // The patience (time limit) of the event is over: its result is no longer useful. So park it.
    if (now >= task.patienceEndsAt) return this.#park(task, 'patience_too_short', delivery.lastError);
    return undefined;
  }

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
   * Decides what happens to an event whose handler failed with `error`. `insisted`: the handler returned
   * `retry(error)` instead of throwing.
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
    // An open breaker says nothing about the event. So these failures are not limited by `snoozesMax`,
    // however long the breaker is open.
    const isShutOut = isRefused && isBreakerOpen(error);
    const isPutOff = isShutOut || (isSpared && this.#snoozesOf(task) < this.#settings.snoozesMax);
    const history: History = {
      // The event did not cause this failure, so the failure must not count as the last attempt.
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
      // Infinity means that an operator has forced a breaker open. In this case, the usual backoff delay
      // applies.
      admitsAt: reopensAt < Infinity ? reopensAt : now,
    });
    if (verdict.kind === 'retry') {
      if (isShutOut) return this.#shutOut(task, judged, verdict.delayMs);
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

  /** Returns the event to the store, because a dependency is down. No attempt is counted. */
  #giveBack(task: Task, now: number, error: unknown, judged: Judgement, fault: Fault): Settlement<Tx> {
    const note = this.#noteOf(task, error);
    task.returnedFor = note;
    const lastUncounted = this.#attempt(task, now, judged.class, note, 'retry', judged.class, fault);
    this.#settings.blame.remember(task, now, fault, lastUncounted);
    return { lease: task.delivery.lease, kind: 'return' };
  }

  /**
   * Returns a time in ms. If no other event fails for this time, the event is the cause of its failures, not
   * a dependency. For an event with a key, the time is at most `holdFor`, because later events of the key
   * wait. In the last two attempts, `holdFor` does not limit the time.
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
      // Reading a property of the error threw another error. The event must be settled nevertheless.
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

  /**
   * Delays the event until the breaker may admit a call. The store counts this delay as a snooze;
   * `#snoozesOf` subtracts it again. If an operator forced the breaker open, it is not known when the breaker
   * closes, so the delays grow, up to about a minute.
   */
  #shutOut({ id, delivery }: Task, { retryAfterMs = 0 }: Judgement, backoffMs: number): Settlement<Tx> {
    const { blame, policy } = this.#settings;
    const { lease } = delivery;
    const before = blame.shutOut(id);
    if (retryAfterMs > 0) return { lease, kind: 'snooze', delayMs: backoffMs };
    const waitMs = Math.min(shutOutMinMs * 2 ** before, shutOutMaxMs) * (0.5 + policy.plan.random() / 2);
    return { lease, kind: 'snooze', delayMs: Math.max(backoffMs, waitMs) };
  }

  /** Returns how often the event was snoozed, not counting the delays because of an open breaker. */
  #snoozesOf({ id, delivery }: Task): number {
    return delivery.snoozes - this.#settings.blame.timesShutOut(id);
  }

  #snoozed(task: Task, delayMs: number): Settlement<Tx> {
    const { lease } = task.delivery;
    const snoozes = this.#snoozesOf(task);
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
      consumer: this.#settings.name,
      // A handler may park an event with a reason of any length, so shorten it.
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
      errorMessage: error ? messageWithCode(error) : '',
      verdict,
      because: because.slice(0, messageMax),
      ...(delayMs !== undefined && { delayMs }),
      owner,
    };
  }
}

/** Appends the code of the error, such as `ETIMEDOUT`, because an attempt record has no field for it. */
function messageWithCode({ type, message, code }: ErrorNote): string {
  if (code === undefined || code === type || message.includes(code)) return message;
  return `${message.slice(0, Math.max(0, messageMax - code.length - 3))} (${code})`
    .trim()
    .slice(0, messageMax);
}

const poison: Judgement = { class: 'fatal' };

function isTemporary({ class: its, retryNever }: Judgement): boolean {
  return (its === 'transient' || its === 'throttled') && !retryNever;
}

/**
 * Returns the story (the attempt records) of the event. If an earlier failure was not counted as an attempt
 * until now, its record is added.
 */
function storyWith({ delivery }: Task, fault: Fault | undefined): readonly AttemptRecord[] {
  return fault?.lastUncounted ? continueStory(delivery.story, fault.lastUncounted) : delivery.story;
}
