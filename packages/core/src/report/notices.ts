import type { OutcomeClass } from '../decide/outcome.ts';
import type { StopReason, Verdict } from '../decide/verdict.ts';
import type { BreakerState } from '../machines/breaker.ts';
import type { RetryBudget } from '../machines/budget.ts';
import { definePart } from '../policy/part.ts';
import type { Plan } from '../policy/plan.ts';
import type { Attempt, GuardedAttempt } from '../run/attempt.ts';
import type { Work } from '../run/work.ts';
import type { Reporter } from './reporter.ts';

interface Heading {
  readonly policy: string | undefined;
  readonly target: string | undefined;
  /** On the scale of `Clock.now` of the policy that speaks. */
  readonly at: number;
}

interface OfWork extends Heading {
  /** The same for all notices of one piece of work, and of no other in this process. */
  readonly work: number;
  /** There where the policy only observes: this is what it would have done. */
  readonly observed?: true;
}

/** Everything that happens, as it happens: one typed stream for telemetry, logs, the console and the simulator. */
export type Notice =
  /** Work begins, in the same tick as the call of `run`: what is active in the caller is active now. */
  | (OfWork & { readonly type: 'start' })
  /** An attempt is over. `last`: nothing follows it. */
  | (OfWork & {
      readonly type: 'attempt';
      readonly attempt: number;
      readonly class: OutcomeClass;
      readonly tookMs: number;
      /** What it threw, or the value that was judged; undefined for a plain success. */
      readonly outcome: unknown;
      readonly last: boolean;
    })
  | (OfWork & {
      readonly type: 'retry';
      readonly attempt: number;
      readonly because: OutcomeClass;
      readonly delayMs: number;
      readonly outcome: unknown;
    })
  | (OfWork & { readonly type: 'done'; readonly attempts: number; readonly tookMs: number })
  | (OfWork & {
      readonly type: 'gave_up';
      readonly attempts: number;
      readonly tookMs: number;
      readonly because: StopReason;
      readonly outcome: unknown;
    })
  /** A part refused an attempt before it was sent. */
  | (OfWork & { readonly type: 'refused'; readonly because: StopReason })
  /** A second attempt was started while the first was in flight. */
  | (OfWork & { readonly type: 'hedge'; readonly attempt: number })
  /** A retry is withheld for want of tokens, the first for a while; or the first since then is paid for. */
  | (OfWork & {
      readonly type: 'budget';
      readonly to: 'exhausted' | 'restored';
      readonly tokens: number;
    })
  /** A fallback answered for work that failed. */
  | (Heading & { readonly type: 'fallback' })
  /** The cache answered: instead of a call, or with what is stale instead of a failure. */
  | (Heading & { readonly type: 'cache'; readonly stale: boolean })
  /** A call has outlived the lease of its permit. */
  | (Heading & { readonly type: 'zombie'; readonly attempt: number })
  /** A server sent a hint that could not be read. */
  | (OfWork & { readonly type: 'unreadable_hint'; readonly attempt: number; readonly hint: string })
  | (Heading & {
      readonly type: 'breaker';
      readonly from: BreakerState;
      readonly to: BreakerState;
      readonly because: string;
    });

export type Listener = (notice: Notice) => void;

/** An attempt that is about to be sent. */
export type Sent = OfWork & { readonly attempt: number };

/**
 * Makes a call inside of something, such as a span that is active while it lasts. It must give what `call` gives, and
 * not throw on its own.
 */
export type Around = <T>(sent: Sent, call: () => T) => T;

interface Subscription {
  readonly listener: Listener;
  readonly around: Around | undefined;
}

const subscriptions = new Set<Subscription>();
const channel = diagnosticsChannel('holdfast:notice');

/**
 * Hears every notice of every policy that has the `notices` part, and is `around` each call of an operation if it wants.
 * Returns the way to stop.
 */
export function subscribe(listener: Listener, around?: Around): () => void {
  const subscription = { listener, around };
  subscriptions.add(subscription);
  return () => subscriptions.delete(subscription);
}

/** Whether anybody hears. While nobody does, no notice is even made. */
function isHeard(): boolean {
  return subscriptions.size > 0 || channel?.hasSubscribers === true;
}

/** Passes a notice on. A listener that throws must not harm the work it hears of: its error surfaces on its own. */
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

/** Node's own stream for such things, reached without an import so that browsers need not know of it. */
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

/** Tells of everything that happens, to whoever `subscribe`s. */
export const notices = definePart({
  key: 'notices',
  fields: {},
  create(_settings, plan) {
    plan.reporter = reporter(plan);
  },
});

const numbers = new WeakMap<Work, number>();
let lastNumber = 0;

/** When an attempt without guards was due: it does not keep that itself. */
function startOf({ log, startedAt }: Work, attempt: number): number {
  const before = log.findLast((each) => each.attempt < attempt)?.verdict;
  return before?.kind === 'retry' ? before.at : startedAt;
}

/** Budgets of which it was told that they are exhausted. */
const withheld = new WeakSet<RetryBudget>();

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
  /** Of many retries that are withheld one is told, and the first that is not. */
  function tellBudget({ budget }: Work, from: OfWork, verdict: Verdict): void {
    if (!budget) return;
    const isWithheld = verdict.kind === 'give_up' && verdict.because === 'budget_exhausted';
    const isPaid = verdict.kind === 'retry' && withheld.delete(budget);
    if (!isPaid && (!isWithheld || withheld.has(budget))) return;
    if (isWithheld) withheld.add(budget);
    const tokens = budget.tokens(from.at);
    publish({ ...from, type: 'budget', to: isPaid ? 'restored' : 'exhausted', tokens });
  }

  return {
    isHeard,
    enter(work, attempt, call) {
      let inner = call;
      // What is only observed was called by somebody else.
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
      tellBudget(work, from, verdict);
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
      if (isHeard()) publish({ policy: plan.name, target, at: now, type: 'zombie', attempt });
    },
    breaker(target, now, from, to, because) {
      if (isHeard()) publish({ policy: plan.name, target, at: now, type: 'breaker', from, to, because });
    },
  };
}
