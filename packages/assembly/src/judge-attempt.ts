import { type AttemptRecord, continueStory, type ErrorNote, errorNote } from '@holdfast/contracts';
import { type Clock, decide, type Judgement, type Policy } from 'holdfast';

export interface FailedAttempt {
  readonly policy: Policy;
  readonly error: unknown;
  /** The number of the attempt, counted from 1. */
  readonly attempt: number;
  readonly startedAt: number;
  readonly previousDelayMs: number;
  readonly patienceEndsAt: number;
  readonly idempotent: boolean;
  readonly story: readonly AttemptRecord[];
  readonly worker: string;
  readonly clock: Clock;
}

export type AttemptVerdict = {
  readonly note: ErrorNote;
  readonly story: readonly AttemptRecord[];
  /** The class of the error. `fatal`: the target has answered that it did not do the work. */
  readonly class: AttemptRecord['class'];
} & (
  | { readonly kind: 'retry'; readonly delayMs: number }
  | { readonly kind: 'give_up'; readonly because: string }
);

/**
 * Decides whether a failed attempt is retried, and adds the attempt to the story of the step (the list of its
 * attempts).
 */
export function judgeAttempt(failed: FailedAttempt): AttemptVerdict {
  const { policy, error, attempt, clock, startedAt } = failed;
  const { plan } = policy;
  const now = clock.now();
  const judged = judgementOf(policy, error);
  const verdict = decide(
    plan,
    {
      attempt,
      previousDelayMs: failed.previousDelayMs,
      patienceEndsAt: failed.patienceEndsAt,
      idempotent: failed.idempotent,
      retryVeto: plan.killSwitch.isOn ? 'kill_switch' : undefined,
    },
    judged,
    { now, roll: plan.random(), tokens: 1, expectedAttemptMs: 0, admitsAt: now },
  );
  const note = errorNote(error);
  const isRetry = verdict.kind === 'retry';
  const because = isRetry ? verdict.because : verdict.kind === 'give_up' ? verdict.because : 'not_retryable';
  const story = continueStory(failed.story, {
    attempt,
    at: clock.epochMs(),
    tookMs: Math.round(now - startedAt),
    class: judged.class,
    errorType: note.type,
    errorMessage: note.message,
    verdict: isRetry ? 'retry' : 'park',
    because,
    ...(isRetry && { delayMs: verdict.delayMs }),
    owner: failed.worker,
  });
  const known = { note, story, class: judged.class };
  return isRetry
    ? { ...known, kind: 'retry', delayMs: verdict.delayMs }
    : { ...known, kind: 'give_up', because };
}

function judgementOf({ plan }: Policy, error: unknown): Judgement {
  try {
    const answer = plan.classify({ ok: false, error }, plan.clock.epochMs) ?? 'fatal';
    return typeof answer === 'object' ? answer : { class: answer };
  } catch {
    return { class: 'fatal' }; // reading a property of the error can throw
  }
}
