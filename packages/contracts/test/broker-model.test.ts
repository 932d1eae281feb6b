import type { Delivery, Lease, Settlement } from '@holdfast/contracts';
import { type MemoryEngine, MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import fc from 'fast-check';
import { seededRandom, type VirtualClock, virtualClock } from 'holdfast/testing';
import { expect, test } from 'vitest';

const topic = 'orders';
const error = { type: 'Error', message: 'no', fingerprint: 'f' };

/** An event as the naive model sees it: no indexes, no states, only what happened to it. */
interface Known {
  readonly id: string;
  readonly key: string | undefined;
  dueAt: number;
  attempts: number;
  snoozes: number;
  deaths: number;
  isSuspect: boolean;
  lease: { readonly token: string; endsAt: number } | undefined;
  fate: 'unsettled' | 'done' | 'parked' | 'blocking';
  holdsKey: boolean;
}

/** The contract in the simplest words, quadratic and exact. */
class Model {
  /** In the order of publication. */
  readonly events: Known[] = [];
  now = 0;

  pass(ms: number): void {
    this.now += ms;
    for (const event of this.events) {
      if (!event.lease || event.lease.endsAt > this.now) continue;
      event.lease = undefined;
      event.isSuspect = true;
      event.deaths += 1;
    }
  }

  isHead(event: Known): boolean {
    return !this.events.some(
      (other) => this.events.indexOf(other) < this.events.indexOf(event) && holdsUp(other, event),
    );
  }

  canRun(event: Known): boolean {
    return event.fate === 'unsettled' && !event.lease && !event.isSuspect && event.dueAt <= this.now;
  }

  /** What a lease must give. */
  expected(limit: number, runMax: number, wantsSuspects: boolean): Known[] {
    const byDue = (a: Known, b: Known) =>
      a.dueAt - b.dueAt || this.events.indexOf(a) - this.events.indexOf(b);
    const heads = this.events.filter((event) => this.isHead(event));
    if (wantsSuspects) {
      const free = heads.filter((event) => event.fate === 'unsettled' && !event.lease && event.isSuspect);
      return free.sort(byDue).slice(0, Math.min(1, limit));
    }
    const given: Known[] = [];
    for (const head of heads.filter((event) => this.canRun(event)).sort(byDue)) {
      const line = this.events.filter((event) => event === head || holdsUp(head, event));
      const stop = line.findIndex((event) => !this.canRun(event));
      const run = line.slice(0, stop === -1 ? line.length : stop).slice(0, runMax);
      given.push(...run.slice(0, limit - given.length));
    }
    return given;
  }

  held({ id, token }: Lease): Known | undefined {
    return this.events.find((event) => event.id === id && event.lease?.token === token);
  }
}

function holdsUp(earlier: Known, later: Known): boolean {
  const stands = (event: Known) =>
    event.holdsKey && (event.fate === 'unsettled' || event.fate === 'blocking');
  return earlier.key !== undefined && earlier.key === later.key && stands(earlier) && stands(later);
}

interface Real {
  readonly clock: VirtualClock;
  readonly storage: MemoryStorage;
  engine: MemoryEngine;
  /** Every lease that was ever given: most of them are stale. */
  readonly leases: Lease[];
  starts: number;
}

type Command = fc.AsyncCommand<Model, Real>;

class Publish implements Command {
  readonly key: string | undefined;
  readonly delayMs: number;
  readonly count: number;
  constructor(key: string | undefined, delayMs: number, count: number) {
    this.key = key;
    this.delayMs = delayMs;
    this.count = count;
  }
  check = () => true;
  async run(model: Model, { engine }: Real): Promise<void> {
    const event = { payload: 'x', delayMs: this.delayMs, ...(this.key !== undefined && { key: this.key }) };
    const published = await engine.broker.publish(topic, Array(this.count).fill(event));
    for (const { id } of published) {
      const trials = { attempts: 0, snoozes: 0, deaths: 0, isSuspect: false, lease: undefined };
      model.events.push({
        ...{ id, key: this.key, dueAt: model.now + this.delayMs, ...trials },
        fate: 'unsettled',
        holdsKey: true,
      });
    }
  }
  toString = () => `publish ${this.count} of ${this.key} in ${this.delayMs}`;
}

class TakeLease implements Command {
  readonly limit: number;
  readonly leaseMs: number;
  readonly runMax: number;
  readonly suspects: boolean;
  constructor(limit: number, leaseMs: number, runMax: number, suspects: boolean) {
    this.limit = limit;
    this.leaseMs = leaseMs;
    this.runMax = runMax;
    this.suspects = suspects;
  }
  check = () => true;
  async run(model: Model, real: Real): Promise<void> {
    const { limit, leaseMs, runMax, suspects } = this;
    const expected = model.expected(limit, runMax, suspects);
    const leased = await real.engine.broker.lease(topic, { owner: 'w', limit, leaseMs, runMax, suspects });
    expect(leased.deliveries.map(shown)).toEqual(
      expected.map(({ id, attempts, snoozes, deaths, isSuspect }) => ({
        id,
        attempts,
        snoozes,
        deaths,
        isSuspect,
      })),
    );
    for (const { id, lease } of leased.deliveries) {
      expect(real.leases.map(({ token }) => token)).not.toContain(lease.token);
      real.leases.push(lease);
      model.events.find((event) => event.id === id)!.lease = {
        token: lease.token,
        endsAt: model.now + leaseMs,
      };
    }
  }
  toString = () =>
    `lease ${this.limit} for ${this.leaseMs}, runs of ${this.runMax}${this.suspects ? ', suspects' : ''}`;
}

class Settle implements Command {
  readonly pick: number;
  readonly kind: Settlement['kind'];
  readonly delayMs: number;
  readonly holdsKey: boolean;
  constructor(pick: number, kind: Settlement['kind'], delayMs: number, holdsKey: boolean) {
    this.pick = pick;
    this.kind = kind;
    this.delayMs = delayMs;
    this.holdsKey = holdsKey;
  }
  check = () => true;
  async run(model: Model, { engine, leases }: Real): Promise<void> {
    const lease = leases.at(-1 - (this.pick % Math.max(1, leases.length)));
    if (!lease) return;
    const event = model.held(lease);
    const [settled] = await engine.broker.settle([this.settlement(lease)]);
    expect(settled?.took).toBe(event !== undefined);
    if (event) this.apply(event, model.now);
  }
  settlement(lease: Lease): Settlement {
    const { kind, delayMs, holdsKey } = this;
    if (kind === 'retry') return { lease, kind, delayMs, error, story: [], holdsKey };
    if (kind === 'snooze') return { lease, kind, delayMs };
    if (kind === 'park') return { lease, kind, stop: 'poison', story: [], holdsKey };
    if (kind === 'discard') return { lease, kind, because: 'unwanted' };
    return { lease, kind: kind === 'return' ? 'return' : 'ack' };
  }
  apply(event: Known, now: number): void {
    event.lease = undefined;
    if (this.kind === 'return') return;
    event.isSuspect = false;
    event.deaths = 0;
    if (this.kind === 'retry' || this.kind === 'snooze') {
      event.dueAt = now + this.delayMs;
      if (this.kind === 'retry') {
        event.attempts += 1;
        if (!this.holdsKey) event.holdsKey = false;
      } else event.snoozes += 1;
    } else if (this.kind === 'park') {
      event.fate = this.holdsKey && event.holdsKey && event.key !== undefined ? 'blocking' : 'parked';
    } else event.fate = 'done';
  }
  toString = () => `settle lease ${this.pick}: ${this.kind} ${this.delayMs} ${this.holdsKey}`;
}

class Extend implements Command {
  readonly pick: number;
  readonly leaseMs: number;
  constructor(pick: number, leaseMs: number) {
    this.pick = pick;
    this.leaseMs = leaseMs;
  }
  check = () => true;
  async run(model: Model, { engine, leases }: Real): Promise<void> {
    const lease = leases.at(-1 - (this.pick % Math.max(1, leases.length)));
    if (!lease) return;
    const event = model.held(lease);
    expect(await engine.broker.extend([lease], this.leaseMs)).toEqual([event !== undefined]);
    if (event?.lease) event.lease.endsAt = model.now + this.leaseMs;
  }
  toString = () => `extend lease ${this.pick} by ${this.leaseMs}`;
}

class PassTime implements Command {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
  check = () => true;
  async run(model: Model, { clock }: Real): Promise<void> {
    await clock.advance(this.ms);
    model.pass(this.ms);
  }
  toString = () => `pass ${this.ms}`;
}

/** The process dies: nothing is settled, and another one opens the same storage. */
class Crash implements Command {
  check = () => true;
  async run(_: Model, real: Real): Promise<void> {
    real.engine = open(real);
    real.starts += 1;
  }
  toString = () => 'crash';
}

class Unblock implements Command {
  readonly pick: number;
  constructor(pick: number) {
    this.pick = pick;
  }
  check = (model: Readonly<Model>) => model.events.length > 0;
  async run(model: Model, { engine }: Real): Promise<void> {
    const event = model.events[this.pick % model.events.length]!;
    expect(await engine.broker.unblock(topic, [event.id], { who: 'ada', why: 'a test' })).toEqual([
      event.fate === 'blocking',
    ]);
    if (event.fate === 'blocking') event.fate = 'parked';
  }
  toString = () => `unblock event ${this.pick}`;
}

const ms = fc.constantFrom(0, 10, 50, 100);
const kind = fc.constantFrom<Settlement['kind'][]>('ack', 'retry', 'snooze', 'return', 'park', 'discard');
const commands: fc.Arbitrary<Command>[] = [
  fc
    .tuple(fc.constantFrom(undefined, 'a', 'b'), ms, fc.integer({ min: 1, max: 4 }))
    .map((args) => new Publish(...args)),
  fc
    .tuple(
      fc.integer({ min: 1, max: 6 }),
      fc.constantFrom(20, 60, 200),
      fc.integer({ min: 1, max: 3 }),
      fc.boolean(),
    )
    .map((args) => new TakeLease(...args)),
  fc.tuple(fc.nat(8), kind, ms, fc.boolean()).map((args) => new Settle(...args)),
  fc.tuple(fc.nat(8), fc.constantFrom(20, 100)).map((args) => new Extend(...args)),
  fc.constantFrom(5, 25, 70, 150).map((time) => new PassTime(time)),
  fc.nat(40).map((pick) => new Unblock(pick)),
  fc.constant(new Crash()),
];

test('does what the simplest model does, whatever happens', async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 60, size: 'max' }), async (script) => {
      const model = new Model();
      const real = start();
      await real.engine.broker.declare(topic, { ordering: 'key' });
      await fc.asyncModelRun(() => ({ model, real }), script);
      await expectNothingLost(model, real);
    }),
    { numRuns: 300 },
  );
});

function start(): Real {
  const parts = { clock: virtualClock({ epochMs: 1 }), storage: new MemoryStorage(), leases: [] };
  return { ...parts, starts: 1, engine: open({ ...parts, starts: 0 }) };
}

/** Each start has chance of its own, as processes do: the same would make the same ids. */
function open({ clock, storage, starts }: Pick<Real, 'clock' | 'storage' | 'starts'>): MemoryEngine {
  return memoryEngine({ clock, storage, random: seededRandom('model', starts) });
}

function shown({ id, attempts, snoozes, deaths, suspect }: Delivery) {
  return { id, attempts, snoozes, deaths, isSuspect: suspect };
}

/** Every event is where the model has it, once, and nothing else is anywhere. */
async function expectNothingLost(model: Model, { engine }: Real): Promise<void> {
  const idsOf = (...fates: Known['fate'][]) =>
    model.events.filter(({ fate }) => fates.includes(fate)).map(({ id }) => id);
  const { items } = await engine.broker.waiting(topic, { limit: 10_000 });
  expect(items.map(({ id }) => id)).toEqual(idsOf('unsettled', 'blocking'));
  const parked = await engine.triage.list({}, { limit: 10_000 });
  expect(parked.items.map(({ id }) => id).sort()).toEqual(idsOf('parked', 'blocking').sort());
}
