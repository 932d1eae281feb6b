import { combine, packsOf, type RetryOn } from '../classify/classifier.ts';
import { type BackoffSettings, backoff, type Delay } from '../decide/backoff.ts';
import {
  anything,
  callback,
  count,
  duration,
  either,
  type FieldsOf,
  group,
  list,
  number,
  shape,
  word,
} from '../fields.ts';
import * as defaults from '../policy/default-policy.ts';
import { definePart } from '../policy/part.ts';
import type { ErrorClass, RetryFields } from '../policy/policy-spec.ts';
import { OptionsError } from '../report/errors.ts';
import { callUser } from '../run/call-user.ts';

/**
 * A custom backoff function. It returns the ms to wait after the attempt with the number `attempt`. Infinity:
 * no further attempt is made.
 */
export type CustomBackoff = (wait: { attempt: number; previousMs: number; roll: number }) => number;

const unlimited = { unlimited: Infinity };

const backoffFields = {
  strategy: word(defaults.backoff.strategy, 'constant', 'linear', 'exponential', 'fibonacci', 'polynomial'),
  base: duration(defaults.backoff.base),
  factor: number(defaults.backoff.factor, 1),
  cap: duration(defaults.backoff.cap),
  jitter: either(
    defaults.backoff.jitter,
    word(defaults.backoff.jitter, 'none', 'full', 'equal', 'decorrelated'),
    number(1, 0, 1),
    shape({ plusMinus: duration('100ms') }),
  ),
};

const fields = {
  patience: duration(defaults.patience, unlimited),
  attempts: count(defaults.attempts, 1, unlimited),
  backoff: either(true, callback<CustomBackoff>(), group(backoffFields)),
  retryOn: list(anything<RetryOn>(), []),
  retryOnly: list(anything<RetryOn>()),
  neverOn: list(callback<ErrorClass>(), []),
  respectServer: group({ cap: duration(defaults.respectServer.cap) }, true),
} satisfies FieldsOf<RetryFields<string>>;

/**
 * The part `retry`: the time limit of the work, the attempts, the waits between them, and which failures are
 * retried.
 */
export const retry = /* @__PURE__ */ definePart<typeof fields, RetryFields<string>>({
  key: 'retry',
  // This part is created first, because other parts read the `attempts` and `patienceMs` that it sets.
  order: -1,
  fields,
  create(settings, plan, spec) {
    if (settings.attempts === Infinity && (spec.patience ?? 'unlimited') === 'unlimited') {
      throw new OptionsError('attempts', 'unlimited', 'a number, or a patience of its own beside it');
    }
    plan.patienceMs = settings.patience;
    plan.attempts = settings.attempts;
    plan.hintCapMs = settings.respectServer?.cap ?? 0;
    plan.delay = delayOf(settings.backoff);
    if (settings.retryOn.length > 0 && settings.retryOnly) {
      throw new OptionsError(
        'retryOnly',
        settings.retryOnly,
        'nothing beside retryOn, which adds to the packs',
      );
    }
    Object.assign(plan, combine(packsOf(settings, plan.packs), settings.neverOn));
  },
});

function delayOf(choice: CustomBackoff | object | null): Delay {
  if (!choice) return () => 0;
  if (typeof choice === 'function') {
    return (attempt, previousMs, roll) =>
      callUser(() => (choice as CustomBackoff)({ attempt, previousMs, roll }), Infinity);
  }
  const settings = choice as BackoffSettings;
  if (settings.base > settings.cap) {
    throw new OptionsError('backoff.base', settings.base, `at most the cap of ${settings.cap} ms`);
  }
  return backoff(settings);
}
