import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide, type Facts, type History, type Rules } from '../src/decide/decide.ts';
import type { Judgement, OutcomeClass } from '../src/decide/outcome.ts';
import { stopReasons } from '../src/decide/verdict.ts';

const rules: Rules = { attempts: 4, delay: () => 200, hintCapMs: 300_000 };
const history: History = {
  attempt: 1,
  previousDelayMs: 0,
  patienceEndsAt: 10_000,
  idempotent: true,
  retryVeto: undefined,
};
const facts: Facts = { now: 1000, roll: 0.5, tokens: 1, expectedAttemptMs: 0, admitsAt: 1000 };

interface Case {
  readonly rules?: Partial<Rules>;
  readonly history?: Partial<History>;
  readonly judged?: Partial<Judgement>;
  readonly facts?: Partial<Facts>;
}

function verdictOf(given: Case) {
  return decide(
    { ...rules, ...given.rules },
    { ...history, ...given.history },
    { class: 'transient', ...given.judged },
    { ...facts, ...given.facts },
  );
}

describe('stops', () => {
  const cases: [sentence: string, given: Case, because: string][] = [
    ['when the caller left', { judged: { class: 'ignored' } }, 'cancelled'],
    ['when the target will say the same again', { judged: { class: 'fatal' } }, 'not_retryable'],
    ['when the server says never', { judged: { retryNever: true } }, 'server_said_stop'],
    ['when another layer owns the retries', { history: { retryVeto: 'not_owner' } }, 'not_owner'],
    [
      'when it may have been processed and must not be twice',
      { history: { idempotent: false } },
      'not_idempotent',
    ],
    ['after the last attempt', { history: { attempt: 4 } }, 'attempts_exhausted'],
    ['when attempts were lowered below those made', { history: { attempt: 9 } }, 'attempts_exhausted'],
    ['when the hint is above the cap', { judged: { retryAfterMs: 300_001 } }, 'server_said_stop'],
    ['when the hint leaves no patience', { judged: { retryAfterMs: 9000 } }, 'patience_too_short'],
    ['when the wait leaves no patience', { rules: { delay: () => 9000 } }, 'patience_too_short'],
    [
      'when the attempt after the wait would not fit',
      { facts: { expectedAttemptMs: 8800 } },
      'patience_too_short',
    ],
    [
      'when the backoff says never, even with endless patience',
      { rules: { delay: () => Infinity }, history: { patienceEndsAt: Infinity } },
      'patience_too_short',
    ],
    ['when the breaker will not admit', { facts: { admitsAt: Infinity } }, 'breaker_open'],
    ['when the breaker reopens after patience', { facts: { admitsAt: 10_000 } }, 'patience_too_short'],
    ['when the budget has less than a token', { facts: { tokens: 0.99 } }, 'budget_exhausted'],
  ];
  test.each(cases)('%s', (_sentence, given, because) => {
    expect(verdictOf(given)).toMatchObject({ kind: 'give_up', because });
  });

  test('with the wait that was too long, and what was left for it', () => {
    const tooLong = verdictOf({ judged: { retryAfterMs: 20_000 }, facts: { expectedAttemptMs: 100 } });
    expect(tooLong).toMatchObject({ because: 'patience_too_short', waitMs: 20_000, leftMs: 8900 });
    expect(verdictOf({ history: { attempt: 4 } })).not.toHaveProperty('waitMs', expect.any(Number));
  });
});

describe('retries', () => {
  const cases: [sentence: string, given: Case, delayMs: number][] = [
    ['after the backoff', {}, 200],
    ['at once when the backoff is zero', { rules: { delay: () => 0 } }, 0],
    ['at once when the backoff is negative', { rules: { delay: () => -5 } }, 0],
    ['at once when the backoff is no number', { rules: { delay: () => Number.NaN } }, 0],
    [
      'with a delay beyond what a host timer takes',
      { rules: { delay: () => 2 ** 33 }, history: { patienceEndsAt: Infinity } },
      2 ** 33,
    ],
    [
      'what was provably not processed',
      { history: { idempotent: false }, judged: { unprocessed: true } },
      200,
    ],
    ['when patience leaves a moment for it', { rules: { delay: () => 8999 } }, 8999],
    ['not before the hint, with chance added above it', { judged: { retryAfterMs: 1000 } }, 1500],
    [
      'with a minute of chance at most',
      { rules: { hintCapMs: 300_000 }, history: { patienceEndsAt: 1e9 }, judged: { retryAfterMs: 200_000 } },
      230_000,
    ],
    ['with less chance where patience is short', { judged: { retryAfterMs: 8000 } }, 8250],
    ['with no regard to a hint that is no number', { judged: { retryAfterMs: Number.NaN } }, 200],
    ['after the backoff when the hint is shorter', { judged: { retryAfterMs: 10 } }, 200],
    [
      'with no regard to hints when told so',
      { rules: { hintCapMs: 0 }, judged: { retryAfterMs: 9999 } },
      200,
    ],
    ['when the breaker reopens', { facts: { admitsAt: 3000 } }, 2000],
    ['with the last token', { facts: { tokens: 1 } }, 200],
    ['on the attempt before the last', { history: { attempt: 3 } }, 200],
  ];
  test.each(cases)('%s', (_sentence, given, delayMs) => {
    expect(verdictOf(given)).toEqual({
      kind: 'retry',
      at: 1000 + delayMs,
      delayMs,
      because: 'transient',
      costs: 1,
    });
  });

  test('throttled work with a base of at least a second', () => {
    const asked: number[] = [];
    const delay: Rules['delay'] = (...args) => {
      asked.push(...args);
      return 0;
    };
    verdictOf({
      rules: { delay },
      judged: { class: 'throttled' },
      history: { attempt: 2, previousDelayMs: 77 },
    });
    verdictOf({ rules: { delay } });
    expect(asked).toEqual([2, 77, 0.5, 1000, 1, 0, 0.5, 0]);
  });
});

test('what is ok is done', () => {
  expect(verdictOf({ judged: { class: 'ok' } })).toEqual({ kind: 'done' });
});

const anyCase = fc.record({
  rules: fc.record({
    attempts: fc.integer({ min: 1, max: 6 }),
    hintCapMs: fc.constantFrom(0, 1000, 300_000),
    delay: fc.double({ noNaN: false }).map((ms) => () => ms),
  }),
  history: fc.record({
    attempt: fc.integer({ min: 1, max: 7 }),
    patienceEndsAt: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.constant(Infinity)),
    idempotent: fc.boolean(),
  }),
  judged: fc.record({
    class: fc.constantFrom<OutcomeClass>('ok', 'transient', 'throttled', 'fatal', 'ignored'),
    retryAfterMs: fc.option(fc.integer({ min: 0, max: 400_000 }), { nil: undefined }),
    retryNever: fc.boolean(),
    unprocessed: fc.boolean(),
  }),
  facts: fc.record({
    now: fc.integer({ min: 0, max: 100_000 }),
    roll: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    tokens: fc.double({ min: 0, max: 3, noNaN: true }),
    expectedAttemptMs: fc.integer({ min: 0, max: 1000 }),
  }),
});

test('whatever happens: within patience, never before a hint, never past the budget, never an unsafe repeat', () => {
  fc.assert(
    fc.property(anyCase, (given) => {
      const made: Case = { ...given, facts: { ...given.facts, admitsAt: given.facts.now } };
      const verdict = verdictOf(made);
      expect(verdictOf(made)).toEqual(verdict); // the same input gives the same verdict
      if (verdict.kind === 'give_up') expect(stopReasons).toContain(verdict.because);
      if (verdict.kind !== 'retry') return;
      expect(verdict.at).toBe(given.facts.now + verdict.delayMs);
      expect(verdict.at + given.facts.expectedAttemptMs).toBeLessThan(given.history.patienceEndsAt);
      expect(verdict.delayMs).toBeGreaterThanOrEqual(0);
      expect(verdict.delayMs).toBeLessThan(Infinity);
      if (given.rules.hintCapMs > 0)
        expect(verdict.delayMs).toBeGreaterThanOrEqual(given.judged.retryAfterMs ?? 0);
      expect(given.facts.tokens).toBeGreaterThanOrEqual(verdict.costs);
      expect(given.history.idempotent || given.judged.unprocessed).toBe(true);
      expect(given.history.attempt).toBeLessThan(given.rules.attempts);
      expect(given.judged.retryNever).toBe(false);
    }),
  );
});
