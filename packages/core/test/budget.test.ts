import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BudgetSettings, type BudgetSnapshot, RetryBudget } from '../src/machines/budget.ts';

const defaults: BudgetSettings = { ratio: 0.1, windowMs: 10_000, attempts: 4 };

/** A budget whose first window, and with it the credit, has passed at time 0. */
function setup(settings: Partial<BudgetSettings> = {}) {
  const budget = new RetryBudget({ ...defaults, ...settings });
  budget.firstTry(-100_000);
  const succeed = (now: number, times: number) => {
    for (let i = 0; i < times; i++) {
      budget.firstTry(now);
      budget.success();
    }
  };
  return { budget, succeed };
}

function copy<T>(json: T): T {
  return JSON.parse(JSON.stringify(json));
}

describe('earning and spending', () => {
  test('ten successes make one retry', () => {
    const { budget, succeed } = setup();
    succeed(0, 9);
    expect(budget.tokens(0)).toBe(0.9);
    expect(budget.trySpend(0, 1)).toBe(false);
    expect(budget.tokens(0)).toBe(0.9);
    succeed(0, 1);
    expect(budget.tokens(0)).toBe(1);
    expect(budget.trySpend(0, 1)).toBe(true);
    expect(budget.tokens(0)).toBe(0);
    expect(budget.trySpend(0, 1)).toBe(false);
  });

  test('first tries alone earn nothing', () => {
    const { budget } = setup();
    for (let i = 0; i < 1_000; i++) budget.firstTry(0);
    expect(budget.tokens(0)).toBe(0);
  });

  test('holds the ratio of its own traffic in the window, and no more', () => {
    const { budget, succeed } = setup();
    for (let now = 0; now < 60_000; now += 10) succeed(now, 1);
    expect(budget.tokens(59_990)).toBe(100);
    for (let now = 60_000; now < 69_000; now += 1_000) budget.firstTry(now);
    expect(budget.tokens(68_000)).toBe(10.9);
    expect(budget.tokens(70_000)).toBe(1);
  });

  test('holds one token, once earned, however little the traffic', () => {
    const { budget, succeed } = setup();
    for (let minute = 0; minute < 100; minute++) succeed(minute * 60_000, 1);
    expect(budget.tokens(99 * 60_000)).toBe(1);
    expect(budget.tokens(1e9)).toBe(1);
    expect(budget.trySpend(1e9, 1)).toBe(true);
  });

  test('a burst of traffic does not bring back what was above the limit', () => {
    const { budget, succeed } = setup();
    for (let minute = 0; minute < 100; minute++) succeed(minute * 60_000, 1);
    for (let i = 0; i < 1_000; i++) budget.firstTry(1e9);
    expect(budget.tokens(1e9)).toBe(1);
  });

  test('and a burst after a long rest does not either', () => {
    const { budget, succeed } = setup();
    succeed(0, 1_000);
    budget.success();
    for (let i = 0; i < 1_000; i++) budget.firstTry(20_001);
    expect(budget.tokens(20_001)).toBe(1);
  });

  test('spending more than there is overdraws it, by all but one token of an operation', () => {
    const { budget, succeed } = setup();
    succeed(0, 15);
    budget.spend(0, 2);
    expect(budget.tokens(0)).toBe(-0.5);
    budget.spend(0, 9);
    expect(budget.tokens(0)).toBe(-2);
  });

  test('what costs more takes more', () => {
    const { budget, succeed } = setup();
    succeed(0, 50);
    expect(budget.trySpend(0, 3)).toBe(true);
    expect(budget.trySpend(0, 3)).toBe(false);
    expect(budget.tokens(0)).toBe(2);
  });

  test('a retry that was not sent is refunded, up to what may be held', () => {
    const { budget, succeed } = setup();
    succeed(0, 20);
    budget.spend(0, 1);
    budget.refund(1);
    expect(budget.tokens(0)).toBe(2);
    budget.refund(5);
    expect(budget.tokens(0)).toBe(2);
  });

  test('with a ratio of 0 nothing is ever earned', () => {
    const { budget, succeed } = setup({ ratio: 0 });
    succeed(0, 1_000);
    expect(budget.tokens(0)).toBe(0);
  });
});

describe('retries that succeed', () => {
  /** One operation that fails once and succeeds when it is tried again. */
  function retried(budget: RetryBudget, now: number, postpaid = true, refund = false) {
    budget.firstTry(now);
    if (budget.tokens(now, postpaid) < 1) return false;
    budget.startRetry(now, postpaid);
    budget.retrySucceeded(now, postpaid, refund);
    return true;
  }

  test('cost nothing where they are paid for afterwards', () => {
    const { budget, succeed } = setup();
    succeed(0, 10);
    expect(retried(budget, 0)).toBe(true);
    expect(budget.tokens(0)).toBe(1.1);
  });

  test('cost a token after a sign of overload, which may be given back', () => {
    const { budget, succeed } = setup();
    succeed(0, 20);
    expect(retried(budget, 0, false)).toBe(true);
    expect(budget.tokens(0)).toBe(1.1);
    expect(retried(budget, 0, false, true)).toBe(true);
    expect(budget.tokens(0)).toBe(1.2);
  });

  test('are free for a fifth of the first tries, beyond those of one operation', () => {
    const { budget, succeed } = setup();
    succeed(0, 1_000);
    let free = 0;
    for (let before = budget.tokens(0); retried(budget, 0) && budget.tokens(0) >= before; free++)
      before = budget.tokens(0);
    // Each of them is a first try, too.
    expect(free).toBe(3);
    for (let i = 0; i < 100; i++) {
      succeed(0, 4);
      const before = budget.tokens(0);
      expect(retried(budget, 0)).toBe(true);
      expect(budget.tokens(0)).toBeGreaterThanOrEqual(before);
    }
  });

  test('let the smallest bucket grow to one operation, and those that fail and calls that need none take that back', () => {
    const { budget, succeed } = setup();
    succeed(0, 10);
    const overdraft = () => budget.tokens(0, true) - budget.tokens(0);
    expect(overdraft()).toBe(0);
    for (const grown of [0.5, 1, 1.5, 2, 2]) {
      succeed(0, 10);
      const before = overdraft();
      retried(budget, 0);
      // Ten calls that succeeded at once have taken a tenth of it before.
      expect(overdraft()).toBeGreaterThan(before);
      expect(overdraft()).toBeLessThanOrEqual(grown);
    }
    const before = overdraft();
    budget.startRetry(0, true);
    budget.retryFailed(0, true);
    expect(overdraft()).toBeCloseTo(before - 0.5, 6);
    succeed(0, 1_000);
    expect(overdraft()).toBeLessThan(0.001);
  });

  test('leave the tokens to others while they are in flight, as far as the overdraft goes', () => {
    const { budget, succeed } = setup();
    succeed(0, 10);
    for (let i = 0; i < 8; i++) {
      succeed(0, 5);
      retried(budget, 0);
    }
    budget.spend(0, budget.tokens(0) - 1);
    budget.startRetry(0, true);
    expect(budget.tokens(0)).toBeCloseTo(1, 6);
    budget.startRetry(0, true);
    budget.startRetry(0, true);
    expect(budget.tokens(0)).toBeLessThan(1);
    expect(budget.tokens(0, true)).toBeLessThan(1);
    budget.retryDropped(true);
    budget.retryDropped(true);
    budget.retryFailed(0, true);
    expect(budget.tokens(0)).toBeCloseTo(0, 6);
  });

  test('are counted on where tokens are scarce: below half of what it can hold', () => {
    const { budget, succeed } = setup();
    succeed(0, 100);
    expect(budget.isScarce(0)).toBe(false);
    budget.spend(0, 5);
    expect(budget.isScarce(0)).toBe(false);
    budget.spend(0, 1);
    expect(budget.isScarce(0)).toBe(true);
  });

  test('are never free where nothing is earned', () => {
    const { budget, succeed } = setup({ ratio: 0 });
    succeed(0, 1_000);
    expect(retried(budget, 0)).toBe(false);
  });
});

describe('the credit of a fresh budget', () => {
  test('lets a script whose only call fails twice succeed on the third attempt', () => {
    const budget = new RetryBudget(defaults);
    budget.firstTry(0);
    expect(budget.trySpend(10, 1)).toBe(true);
    expect(budget.trySpend(500, 1)).toBe(true);
    budget.success();
    expect(budget.tokens(510)).toBe(1.1);
  });

  test('is for one operation, however many fail', () => {
    const budget = new RetryBudget(defaults);
    let retries = 0;
    for (let i = 0; i < 100; i++) {
      budget.firstTry(i);
      for (let attempt = 2; attempt <= 4; attempt++) if (budget.trySpend(i, 1)) retries++;
    }
    expect(retries).toBe(3);
  });

  test('is gone after the first window, counted from the first try', () => {
    const budget = new RetryBudget(defaults);
    expect(budget.tokens(1e9)).toBe(3);
    budget.firstTry(1e9);
    budget.firstTry(1e9 + 5_000);
    expect(budget.tokens(1e9 + 9_999)).toBe(3);
    expect(budget.tokens(1e9 + 10_000)).toBe(0);
    budget.firstTry(1e9 + 10_001);
    expect(budget.tokens(1e9 + 10_001)).toBe(0);
  });

  test('of unlimited attempts lasts as long as nothing succeeds, and a window more', () => {
    const budget = new RetryBudget({ ...defaults, attempts: Infinity });
    budget.firstTry(0);
    expect(budget.tokens(600_000)).toBe(100);
    budget.success();
    budget.firstTry(600_000);
    expect(budget.tokens(609_999)).toBeGreaterThanOrEqual(100);
    expect(budget.tokens(610_000)).toBeLessThanOrEqual(1);
  });

  test('which passes from the next look on', () => {
    const budget = new RetryBudget({ ...defaults, attempts: Infinity });
    budget.success();
    expect(budget.tokens(600_000)).toBeGreaterThanOrEqual(100);
    expect(budget.tokens(610_000)).toBeLessThanOrEqual(1);
  });

  test('is spent before what was earned, and refunded as credit', () => {
    const budget = new RetryBudget(defaults);
    for (let i = 0; i < 20; i++) {
      budget.firstTry(0);
      budget.success();
    }
    expect(budget.tokens(0)).toBe(5);
    budget.spend(0, 4);
    expect(budget.tokens(0)).toBe(1);
    budget.refund(1);
    expect(budget.tokens(0)).toBe(2);
    expect(budget.tokens(9_999)).toBe(2);
    expect(budget.tokens(10_000)).toBe(1);
    budget.spend(10_000, 1);
    budget.refund(1);
    expect(budget.tokens(10_000)).toBe(1);
  });

  test('is bounded where attempts are not', () => {
    expect(new RetryBudget({ ...defaults, attempts: Infinity }).tokens(0)).toBe(100);
    expect(new RetryBudget({ ...defaults, attempts: 102 }).tokens(0)).toBe(100);
    expect(new RetryBudget({ ...defaults, attempts: 100 }).tokens(0)).toBe(99);
    expect(new RetryBudget({ ...defaults, attempts: 1 }).tokens(0)).toBe(0);
  });
});

describe('save and restore', () => {
  test('a restart brings no new credit', () => {
    const { budget, succeed } = setup();
    succeed(0, 20);
    const next = new RetryBudget(defaults);
    next.restore(copy(budget.save(0)), 500);
    expect(next.tokens(500)).toBe(2);
    next.firstTry(501);
    expect(next.tokens(501)).toBe(2);
  });

  test('credit keeps what time it has left, on another clock', () => {
    const budget = new RetryBudget(defaults);
    expect(budget.save(0).creditLeftMs).toBe(null);
    const unused = new RetryBudget(defaults);
    unused.restore(copy(budget.save(0)), 0);
    expect(unused.tokens(1e9)).toBe(3);
    budget.firstTry(0);
    const next = new RetryBudget({ ...defaults, attempts: 3 });
    next.restore(copy(budget.save(4_000)), 77);
    expect(next.tokens(77 + 5_999)).toBe(2);
    expect(next.tokens(77 + 6_000)).toBe(0);
  });

  test('what has passed by then is not saved', () => {
    const budget = new RetryBudget(defaults);
    budget.firstTry(0);
    expect(budget.save(10_000)).toMatchObject({ earned: 0, credit: 0 });
  });
});

test('is unused when no operation has begun in its window', () => {
  const budget = new RetryBudget(defaults);
  expect(budget.isUnused(0)).toBe(true);
  budget.firstTry(0);
  expect(budget.isUnused(5_000)).toBe(false);
  expect(budget.isUnused(10_000)).toBe(true);
});

test('with new settings its credit is never more than it was, nor than they allow', () => {
  const budget = new RetryBudget({ ...defaults, attempts: 3 });
  budget.firstTry(0);
  expect(budget.resize(0, { ...defaults, attempts: 2 }).tokens(0)).toBe(1);
  budget.resize(0, { ...defaults, attempts: 10 });
  expect(budget.tokens(0)).toBe(1);
  // What is given back beyond it is earned, and so within the one token of little traffic.
  budget.refund(5);
  expect(budget.tokens(0)).toBe(2);
});

/** The budget as one would explain it, from the list of all that happened. */
class Model {
  now = 0;
  firstTries: number[] = [];
  earned = 0;
  credit = 3;
  creditSpent = 0;
  retries = 0;

  get limit(): number {
    const row = Math.floor(this.now / 100);
    const recent = this.firstTries.filter((at) => Math.floor(at / 100) > row - 10).length;
    return Math.max(1, 0.1 * recent);
  }

  clip(): void {
    this.earned = Math.min(this.earned, this.limit);
    if (this.firstTries.length > 0 && this.now >= this.firstTries[0]! + 1_000)
      this.credit = this.creditSpent = 0;
  }
}

type Step = fc.Command<Model, { budget: RetryBudget }>;

const step = (name: string, run: (model: Model, budget: RetryBudget) => void): Step => ({
  check: () => true,
  run(model, { budget }) {
    run(model, budget);
    model.clip();
    expect(budget.tokens(model.now)).toBeCloseTo(model.earned + model.credit, 9);
  },
  toString: () => name,
});

const smallSettings: BudgetSettings = { ratio: 0.1, windowMs: 1_000, attempts: 4 };

const steps: fc.Arbitrary<Step>[] = [
  fc.oneof(fc.nat(60), fc.nat(1_500)).map((ms) =>
    step(`wait ${ms}`, (model) => {
      model.now += ms;
    }),
  ),
  fc.tuple(fc.nat(30), fc.nat(30)).map(([tries, successes]) =>
    step(`${tries} first tries, ${successes} successes`, (model, budget) => {
      for (let i = 0; i < tries; i++) {
        budget.firstTry(model.now);
        model.firstTries.push(model.now);
      }
      model.clip();
      for (let i = 0; i < Math.min(tries, successes); i++) {
        budget.success();
        model.earned = Math.min(model.limit, model.earned + 0.1);
      }
    }),
  ),
  fc.integer({ min: 1, max: 3 }).map((cost) =>
    step(`spend ${cost}`, (model, budget) => {
      model.clip();
      const enough = model.earned + model.credit > cost - 1e-9;
      expect(budget.trySpend(model.now, cost)).toBe(enough);
      if (!enough) return;
      const credit = Math.min(model.credit, cost);
      model.credit -= credit;
      model.creditSpent += credit;
      model.earned -= cost - credit;
      model.retries += cost;
    }),
  ),
  fc.constant(
    step('refund 1', (model, budget) => {
      model.clip();
      if (model.retries === 0) return;
      budget.tokens(model.now);
      budget.refund(1);
      model.retries--;
      if (model.creditSpent >= 1) {
        model.creditSpent--;
        model.credit++;
      } else model.earned = Math.min(model.limit, model.earned + 1);
    }),
  ),
];

const reload: Step = {
  check: () => true,
  run(model, real) {
    const snapshot: BudgetSnapshot = copy(real.budget.save(model.now));
    real.budget = new RetryBudget(smallSettings);
    real.budget.restore(snapshot, model.now);
  },
  toString: () => 'save and restore',
};

test('agrees with its explanation on any story, across saving and restoring', () => {
  fc.assert(
    fc.property(
      fc.commands([...steps, fc.constant(reload)], { maxCommands: 80, size: 'max' }),
      (commands) => {
        const model = new Model();
        fc.modelRun(() => ({ model, real: { budget: new RetryBudget(smallSettings) } }), commands);
      },
    ),
    { numRuns: 500 },
  );
});

test('attempts stay within the promise from any moment on, for any failures, clients and restarts', () => {
  const operation = fc.record({
    client: fc.nat(4),
    restarts: fc.constantFrom(false, false, false, false, true),
    waitMs: fc.oneof(fc.nat(5), fc.nat(300)),
    failures: fc.constantFrom(0, 0, 0, 1, 1, 2, 9),
    postpaid: fc.boolean(),
    refund: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 400, size: 'max' }), fc.nat(400), (operations, from) => {
      const budgets = Array.from({ length: 5 }, () => new RetryBudget(smallSettings));
      const firstTries: number[][] = budgets.map(() => []);
      /** Of each client, one operation: what a start brings. */
      let allowance = 3 * budgets.length;
      let first = 0;
      let attempts = 0;
      let failedRetries = 0;
      let now = 0;
      const held = () =>
        firstTries.reduce(
          (sum, tries) => sum + Math.max(3, 0.1 * tries.filter((at) => at > now - 1_000).length),
          0,
        );
      for (const [index, { client, restarts, waitMs, failures, postpaid, refund }] of operations.entries()) {
        if (index === from) {
          // What may have been saved up for free retries by then, once more.
          allowance += 3 * budgets.length;
          first = attempts = failedRetries = 0;
        }
        now += waitMs;
        if (restarts) {
          budgets[client] = new RetryBudget(smallSettings);
          allowance += 6;
        }
        const budget = budgets[client]!;
        budget.firstTry(now);
        firstTries[client]!.push(now);
        first++;
        attempts++;
        let failed = failures;
        let isRetried = false;
        for (let attempt = 2; failed > 0 && attempt <= 4 && budget.tokens(now, postpaid) >= 1; attempt++) {
          if (isRetried) budget.retryFailed(now, postpaid);
          budget.startRetry(now, postpaid);
          isRetried = true;
          attempts++;
          failed--;
          if (failed > 0) failedRetries++;
        }
        if (failed > 0) {
          if (isRetried) budget.retryFailed(now, postpaid);
        } else if (isRetried) budget.retrySucceeded(now, postpaid, !postpaid && refund);
        else budget.success();
        expect(attempts).toBeLessThanOrEqual(1.3 * first + held() + allowance + 1e-9);
        expect(failedRetries).toBeLessThanOrEqual(0.1 * first + held() + allowance + 1e-9);
      }
    }),
    { numRuns: 500 },
  );
});
