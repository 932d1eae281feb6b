import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Breaker, type BreakerSettings, type BreakerSnapshot } from '../src/machines/breaker.ts';

/** The breaker as one would explain it: everything is kept and looked through each time. */
class Model {
  readonly settings: BreakerSettings;
  state: 'closed' | 'open' | 'half-open' = 'closed';
  period = 0;
  calls: { row: number; failed: boolean; slow: boolean; full: boolean }[] = [];
  failingSince = 0;
  reopensAt = 0;
  soonestAt = 0;
  turnedAway = 0;
  successes = 0;
  probes = new Map<number, { period: number; endsAt: number }>();

  constructor(settings: BreakerSettings) {
    this.settings = settings;
  }

  pass(now: number): void {
    const ends = [...this.flying()].map(([, probe]) => probe.endsAt);
    const first = Math.min(...ends);
    if (first <= now) this.open(first);
  }

  flying() {
    return [...this.probes].filter(([, probe]) => this.state === 'half-open' && probe.period === this.period);
  }

  admits(now: number): boolean {
    this.pass(now);
    if (this.state === 'closed') return true;
    if (this.state === 'open') return now >= this.reopensAt;
    return this.flying().length < this.settings.probes;
  }

  admitted(now: number, ticket: number, leaseMs: number): void {
    if (this.state === 'open') {
      this.state = 'half-open';
      this.successes = 0;
      this.period++;
    }
    if (this.state === 'half-open') this.probes.set(ticket, { period: this.period, endsAt: now + leaseMs });
  }

  settle(
    now: number,
    ticket: number,
    period: number,
    failed: boolean,
    durationMs: number,
    full = false,
  ): void {
    this.pass(now);
    if (period !== this.period) return;
    const slow = durationMs > this.settings.slowOverMs;
    if (this.state === 'closed') {
      const rowMs = this.settings.windowMs / 10;
      const row = Math.floor(now / rowMs);
      this.calls.push({ row, failed, slow, full });
      const { consecutive, windowCalls, minimum, failureRatio, slowRatio } = this.settings;
      const seen = windowCalls
        ? this.calls.slice(-windowCalls)
        : this.calls.filter((call) => call.row > row - 10);
      const enough = seen.length >= minimum;
      const lastGood = this.calls.findLastIndex((call) => !call.failed);
      const tail = this.calls.length - 1 - lastGood;
      const earlier = seen.slice(0, Math.max(0, seen.length - tail));
      const share = earlier.filter((call) => call.failed).length / earlier.length;
      const isChance =
        earlier.length >= minimum &&
        (tail < consecutive + 2 * Math.log2(seen.length / minimum) || seen.length * share ** tail > 0.01);
      const inARow = consecutive > 0 && tail >= consecutive && !isChance;
      const failures = seen.filter((call) => call.failed && !call.full).length;
      const slows = seen.filter((call) => call.slow).length;
      if (inARow || (failed && enough && failures / seen.length >= failureRatio)) this.open(now);
      else if (slow && enough && slows / seen.length >= slowRatio) this.open(now);
    } else if (this.state === 'half-open' && this.probes.delete(ticket)) {
      if (failed || slow) this.open(now);
      else if (++this.successes === this.settings.probes) {
        this.state = 'closed';
        this.period++;
        this.calls = [];
      }
    }
  }

  open(at: number): void {
    if (this.state === 'closed') this.failingSince = at;
    const [least, most] = this.settings.openForMs;
    this.reopensAt = at + Math.min(most, Math.max(least, (at - this.failingSince) / 4)) * 0.75;
    this.soonestAt = at + least * 0.75;
    this.turnedAway = 0;
    this.state = 'open';
    this.period++;
  }
}

interface Real {
  breaker: Breaker;
  now: number;
  tickets: { ticket: number; period: number }[];
}
type Step = fc.Command<Model, Real>;

function same(model: Model, real: Real): void {
  const refuses = !model.admits(real.now);
  expect(real.breaker.refuses(real.now)).toBe(refuses);
  const due = model.state === 'open' && real.now >= model.reopensAt;
  expect(real.breaker.state(real.now)).toBe(due ? 'half-open' : model.state);
  if (model.state === 'open' && !due) expect(real.breaker.reopensAt(real.now)).toBe(model.reopensAt);
  if (!refuses) expect(real.breaker.reopensAt(real.now)).toBe(real.now);
}

const modelSettings: BreakerSettings = {
  windowMs: 1_000,
  windowCalls: 0,
  failureRatio: 0.5,
  minimum: 6,
  consecutive: 4,
  slowOverMs: 50,
  slowRatio: 0.6,
  openForMs: [100, 400],
  probes: 2,
};

const step = (name: string, run: (model: Model, real: Real) => void): Step => ({
  check: () => true,
  run(model, real) {
    run(model, real);
    same(model, real);
  },
  toString: () => name,
});

const steps: fc.Arbitrary<Step>[] = [
  fc.nat(150).map((ms) =>
    step(`wait ${ms}`, (_model, real) => {
      real.now += ms;
    }),
  ),
  fc.nat(1_500).map((ms) =>
    step(`idle ${ms}`, (_model, real) => {
      real.now += ms;
    }),
  ),
  fc.integer({ min: 1, max: 300 }).map((leaseMs) =>
    step(`admit for ${leaseMs}`, (model, real) => {
      const admits = model.admits(real.now);
      const ticket = real.breaker.admit(real.now, leaseMs);
      expect(ticket >= 0).toBe(admits);
      if (!admits) return;
      model.admitted(real.now, ticket, leaseMs);
      real.tickets.push({ ticket, period: model.period });
    }),
  ),
  fc.integer({ min: 1, max: 150 }).map((times) =>
    step(`turn away ${times}`, (model, real) => {
      for (let n = 0; n < times && !model.admits(real.now); n++) {
        real.breaker.turnAway();
        if (++model.turnedAway >= 100) model.reopensAt = Math.min(model.reopensAt, model.soonestAt);
      }
    }),
  ),
  fc.tuple(fc.nat(), fc.boolean(), fc.nat(60), fc.boolean()).map(([pick, failed, durationMs, full]) =>
    step(`settle ${pick} ${failed ? 'failed' : 'ok'} after ${durationMs}`, (model, real) => {
      // Sometimes one that has been settled already, as late and double results do come.
      const ticket = real.tickets[pick % real.tickets.length];
      if (
        ticket === undefined ||
        (model.state === 'closed' && ticket.period === model.period && pick % 3 === 0)
      )
        return;
      model.settle(real.now, ticket.ticket, ticket.period, failed, durationMs, full);
      real.breaker.settle(real.now, ticket.ticket, failed, durationMs, full);
    }),
  ),
  fc.nat().map((pick) =>
    step(`cancel ${pick}`, (model, real) => {
      const ticket = real.tickets[pick % real.tickets.length];
      if (ticket === undefined) return;
      model.pass(real.now);
      if (ticket.period === model.period) model.probes.delete(ticket.ticket);
      real.breaker.cancel(real.now, ticket.ticket);
    }),
  ),
  fc.constantFrom('x', '.', 'xx', 'x.x.x', 'S.SSS', 'f', 'fff.', 'ff.f.').map((pattern) =>
    step(`calls ${pattern}`, (model, real) => {
      for (const each of pattern) {
        if (!model.admits(real.now)) return;
        const ticket = real.breaker.admit(real.now, 100);
        model.admitted(real.now, ticket, 100);
        const { period } = model;
        const durationMs = each === 'S' ? 51 : 50;
        const failed = each === 'x' || each === 'f';
        model.settle(real.now, ticket, period, failed, durationMs, each === 'f');
        real.breaker.settle(real.now, ticket, failed, durationMs, each === 'f');
      }
    }),
  ),
];

const reload = (settings: BreakerSettings) =>
  step('save and restore', (model, real) => {
    model.pass(real.now);
    if (model.state === 'half-open') {
      model.state = 'open';
      model.period++;
    }
    const snapshot: BreakerSnapshot = JSON.parse(JSON.stringify(real.breaker.save(real.now)));
    real.breaker = new Breaker(settings, () => 0.5);
    real.breaker.restore(snapshot, real.now);
    model.soonestAt = model.reopensAt;
    model.turnedAway = 0;
  });

test.each([
  ['time', modelSettings],
  ['calls', { ...modelSettings, windowCalls: 8 }],
])('agrees with its explanation on any story, by %s, across saving and restoring', (_kind, settings) => {
  fc.assert(
    fc.property(
      fc.commands([...steps, fc.constant(reload(settings))], { maxCommands: 120, size: 'max' }),
      (commands) => {
        fc.modelRun(
          () => ({
            model: new Model(settings),
            real: { breaker: new Breaker(settings, () => 0.5), now: 0, tickets: [] },
          }),
          commands,
        );
      },
    ),
    { numRuns: 500 },
  );
});

test('admission resumes within lease and open time, from any state and with any probes', () => {
  const [, most] = modelSettings.openForMs;
  const leaseMax = 300;
  const event = fc.record({
    waitMs: fc.nat(200),
    leaseMs: fc.integer({ min: 1, max: leaseMax }),
    fate: fc.constantFrom('hangs', 'fails', 'fails', 'succeeds', 'is cancelled'),
    roll: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 80, size: 'max' }), (events) => {
      let roll = 0;
      let now = 0;
      let lastAdmission = 0;
      const breaker = new Breaker(modelSettings, () => roll);
      for (const { waitMs, leaseMs, fate, roll: next } of events) {
        now += waitMs;
        roll = next;
        const ticket = breaker.admit(now, leaseMs);
        if (ticket >= 0) lastAdmission = now;
        else expect(now - lastAdmission).toBeLessThan(leaseMax + most);
        if (fate === 'is cancelled') breaker.cancel(now, ticket);
        else if (fate !== 'hangs') breaker.settle(now, ticket, fate === 'fails', 1);
        expect(breaker.reopensAt(now)).toBeLessThanOrEqual(now + leaseMax + most);
      }
      expect(breaker.refuses(now + leaseMax + most)).toBe(false);
    }),
    { numRuns: 500 },
  );
});
