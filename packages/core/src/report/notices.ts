import type { OutcomeClass } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import type { BreakerState } from '../machines/breaker.ts';
import type { RetryBudget } from '../machines/budget.ts';
import { definePart } from '../policy/part.ts';
import type { Plan } from '../policy/plan.ts';
import type { Attempt, GuardedAttempt } from '../run/attempt.ts';
import type { Work } from '../run/work.ts';
import { OptionsError } from './errors.ts';
import type { Reporter } from './reporter.ts';

interface Heading {
  readonly policy: string | undefined;
  readonly target: string | undefined;
  /** When the event happened, on the scale of `Clock.now`. */
  readonly at: number;
}

interface OfWork extends Heading {
  /** The number of the run (an operation with all its attempts), unique in this process. */
  readonly work: number;
  /**
   * Set only in mode `observe`: the notice says what the policy would have done. The call that is really made
   * has its own notices, without `observed`.
   */
  readonly observed?: true;
}

/** An event in a policy, for telemetry, logs, the console and the simulator. */
export type Notice =
  /** A run begins. Listeners are called synchronously, in the async context of the caller. */
  | (OfWork & { readonly type: 'start' })
  /** An attempt ended. `last`: no other attempt of this run follows. */
  | (OfWork & {
      readonly type: 'attempt';
      readonly attempt: number;
      readonly class: OutcomeClass;
      readonly tookMs: number;
      /** The error, or a returned value that was classified. Undefined for a plain success. */
      readonly outcome: unknown;
      readonly last: boolean;
    })
  /** Another attempt follows after `delayMs`. */
  | (OfWork & {
      readonly type: 'retry';
      readonly attempt: number;
      readonly because: OutcomeClass;
      readonly delayMs: number;
      readonly outcome: unknown;
    })
  /** A run succeeded. */
  | (OfWork & { readonly type: 'done'; readonly attempts: number; readonly tookMs: number })
  /** A run failed, and is not attempted again. */
  | (OfWork & {
      readonly type: 'gave_up';
      readonly attempts: number;
      readonly tookMs: number;
      readonly because: StopReason;
      readonly outcome: unknown;
    })
  /** A part of the policy, such as the breaker, refused an attempt. */
  | (OfWork & { readonly type: 'refused'; readonly because: StopReason })
  /** A hedge was sent: a second attempt, while the first is still in flight. */
  | (OfWork & { readonly type: 'hedge'; readonly attempt: number })
  /**
   * The retry budget refused a retry (`exhausted`), or paid for a retry again (`restored`). The notice is
   * published only at the change from one to the other.
   */
  | (OfWork & {
      readonly type: 'budget';
      readonly to: 'exhausted' | 'restored';
      readonly tokens: number;
    })
  /** The run failed, and a fallback returned a result instead. */
  | (Heading & { readonly type: 'fallback' })
  /** The cache returned the result. `stale` false: instead of a call. `stale` true: instead of a failure. */
  | (Heading & { readonly type: 'cache'; readonly stale: boolean })
  /** The policy gave up a call, but the call still ran when the bulkhead took back its permit. */
  | (Heading & { readonly type: 'zombie'; readonly attempt: number; readonly observed?: true })
  /**
   * A server said when to try again, but the header could not be parsed. Or a classifier threw an error, or
   * returned something that is not a class.
   */
  | (OfWork & { readonly type: 'unreadable_hint'; readonly attempt: number; readonly hint: string })
  /** A breaker changed its state. */
  | (Heading & {
      readonly type: 'breaker';
      readonly from: BreakerState;
      readonly to: BreakerState;
      readonly because: string;
      /** Set if the policy acts on no run and only observes. Then this breaker refuses no calls. */
      readonly observed?: true;
    });

/**
 * Called synchronously with every notice. If it throws, the run is not affected: the error is rethrown in a
 * microtask.
 */
export type Listener = (notice: Notice) => void;

/** Describes an attempt that is about to be sent. */
export type Sent = OfWork & { readonly attempt: number };

/**
 * Wraps each call of an operation, for example to make a tracing span active. It must return the result of
 * `call`, and must not throw errors of its own.
 */
export type Around = <T>(sent: Sent, call: () => T) => T;

interface Subscription {
  readonly listener: Listener;
  readonly around: Around | undefined;
}

const subscriptions = new Set<Subscription>();
const channel = diagnosticsChannel('holdfast:notice');

/**
 * Calls `listener` with every notice of all policies that have the part `notices`. `around` wraps each call
 * of an operation. Returns a function that unsubscribes. If `listener` throws, the run and the other listeners
 * are not affected: the error is rethrown in a microtask, so the process gets it as an uncaught exception.
 */
export function subscribe(listener: Listener, around?: Around): () => void {
  if (typeof listener !== 'function') throw new OptionsError('listener', listener, 'a function');
  const subscription = { listener, around };
  subscriptions.add(subscription);
  return () => subscriptions.delete(subscription);
}

function isHeard(): boolean {
  return subscriptions.size > 0 || channel?.hasSubscribers === true;
}

function publish(notice: Notice): void {
  for (const { listener } of subscriptions) {
    try {
      listener(notice);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
  if (channel?.hasSubscribers) channel.publish(notice);
}

/**
 * Returns a channel of Node's `diagnostics_channel`. The module is not imported, so that this file also loads
 * in browsers.
 */
function diagnosticsChannel(name: string): Channel | undefined {
  const host = globalThis as {
    process?: { getBuiltinModule?: (id: string) => { channel(name: string): Channel } };
  };
  return host.process?.getBuiltinModule?.('node:diagnostics_channel').channel(name);
}

interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** A part that publishes notices to the listeners of `subscribe` and to `diagnostics_channel`. */
export const notices = definePart({
  key: 'notices',
  fields: {},
  create(_settings, plan) {
    plan.reporter = reporter(plan);
  },
});

const numbers = new WeakMap<Work, number>();
let lastNumber = 0;

/**
 * Returns when an attempt was planned to start. Policies without guards (breaker, …) do not record the real
 * start.
 */
function startOf({ log, startedAt }: Work, attempt: number): number {
  const before = log.findLast((each) => each.attempt < attempt)?.verdict;
  return before?.kind === 'retry' ? before.at : startedAt;
}

const exhausted = new WeakSet<RetryBudget>();

function reporter(plan: Plan): Reporter {
  function heading(work: Work, now: number, attempt?: Attempt): OfWork {
    let number = numbers.get(work);
    if (number === undefined) {
      number = ++lastNumber;
      numbers.set(work, number);
    }
    const of = { policy: plan.name, target: attempt?.target ?? work.target?.name, at: now, work: number };
    return work.options?.observed ? { ...of, observed: true } : of;
  }
  /**
   * Some notices belong to no single run, for example the notice that a breaker changed its state. They are
   * marked as `observed` if the policy acts on no run.
   */
  function mark(): { observed?: true } {
    return plan.enforcedShare === 0 ? { observed: true } : {};
  }
  function publishBudget({ budget }: Work, from: OfWork, verdict: Verdict): void {
    if (!budget) return;
    const isRefused = verdict.kind === 'give_up' && verdict.because === 'budget_exhausted';
    const isPaid = verdict.kind === 'retry' && exhausted.delete(budget);
    if (!isPaid && (!isRefused || exhausted.has(budget))) return;
    if (isRefused) exhausted.add(budget);
    const tokens = budget.tokens(from.at);
    publish({ ...from, type: 'budget', to: isPaid ? 'restored' : 'exhausted', tokens });
  }

  return {
    isHeard,
    enter(work, attempt, call) {
      let inner = call;
      // In mode `observe`, this run is only simulated. `around` wraps only the run that makes the real call.
      if (work.options?.observed) return inner();
      for (const { around } of subscriptions) {
        if (!around) continue;
        const at = (attempt as Partial<GuardedAttempt>).startedAt ?? plan.clock.now();
        const sent = { ...heading(work, at, attempt), attempt: attempt.attempt };
        const next = inner;
        inner = () => around(sent, next);
      }
      return inner();
    },
    started(work, now) {
      if (isHeard()) publish({ ...heading(work, now), type: 'start' });
    },
    attempt(work, attempt, now, judged, verdict) {
      if (!isHeard()) return;
      const from = heading(work, now, attempt);
      const { attempt: number } = attempt;
      const { result: outcome } = work;
      const last = verdict.kind === 'done' || verdict.kind === 'give_up';
      const tookMs = now - ((attempt as Partial<GuardedAttempt>).startedAt ?? startOf(work, number));
      publish({ ...from, type: 'attempt', attempt: number, class: judged.class, tookMs, outcome, last });
      if (judged.unreadableHint !== undefined) {
        publish({ ...from, type: 'unreadable_hint', attempt: number, hint: judged.unreadableHint });
      }
      publishBudget(work, from, verdict);
      if (verdict.kind !== 'retry') return;
      const { because, delayMs } = verdict;
      publish({ ...from, type: 'retry', attempt: number, because, delayMs, outcome });
    },
    ended(work, now) {
      if (!isHeard()) return;
      const { attempt: attempts, result: outcome, stop: because } = work;
      const ending = { ...heading(work, now), attempts, tookMs: now - work.startedAt };
      publish(because ? { ...ending, type: 'gave_up', because, outcome } : { ...ending, type: 'done' });
    },
    refused(work, now, target, because) {
      if (isHeard()) publish({ ...heading(work, now), target, type: 'refused', because });
    },
    hedged(work, attempt, now) {
      if (isHeard()) publish({ ...heading(work, now, attempt), type: 'hedge', attempt: attempt.attempt });
    },
    served(target, now, by) {
      if (!isHeard()) return;
      const of = { policy: plan.name, target, at: now };
      publish(by === 'fallback' ? { ...of, type: by } : { ...of, type: 'cache', stale: by === 'stale' });
    },
    zombie({ target, attempt }, now) {
      if (isHeard()) publish({ policy: plan.name, target, at: now, type: 'zombie', attempt, ...mark() });
    },
    breaker(target, now, from, to, because) {
      if (!isHeard()) return;
      publish({ policy: plan.name, target, at: now, type: 'breaker', from, to, because, ...mark() });
    },
  };
}
