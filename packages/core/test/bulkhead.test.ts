import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ADMITTED, Bulkhead, FULL, QUEUED, type Waiter } from '../src/machines/bulkhead.ts';

/** A call that writes down what it is told. */
class Call implements Waiter {
  readonly name: string;
  readonly priority: number;
  readonly expiresAt: number;
  readonly told: string[];
  ahead: Waiter | undefined = undefined;
  behind: Waiter | undefined = undefined;
  reaction: (now: number) => void = () => {};

  constructor(told: string[], name: string, priority = 1, expiresAt = Infinity) {
    this.told = told;
    this.name = name;
    this.priority = priority;
    this.expiresAt = expiresAt;
  }

  admitted(now: number): void {
    this.#tell('admitted', now);
  }

  expired(now: number): void {
    this.#tell('expired', now);
  }

  displaced(now: number): void {
    this.#tell('displaced', now);
  }

  #tell(what: string, now: number): void {
    this.told.push(`${this.name} ${what}`);
    this.reaction(now);
  }
}

function setup(concurrent = 2, queueMax = 3) {
  const bulkhead = new Bulkhead({ concurrent, queueMax });
  const told: string[] = [];
  const call = (name: string, priority = 1, expiresAt = Infinity) =>
    new Call(told, name, priority, expiresAt);
  const enter = (name: string, priority = 1, expiresAt = Infinity, now = 0) =>
    bulkhead.enter(now, call(name, priority, expiresAt));
  const fill = () => {
    while (bulkhead.tryEnter());
  };
  return { bulkhead, told, call, enter, fill };
}

describe('permits', () => {
  test('capacity 2 never reaches 3', () => {
    const { bulkhead, enter } = setup();
    expect(['a', 'b', 'c'].map((name) => enter(name))).toEqual([ADMITTED, ADMITTED, QUEUED]);
    expect(bulkhead.tryEnter()).toBe(false);
    expect(bulkhead.inFlight).toBe(2);
    bulkhead.leave(0);
    expect(bulkhead.inFlight).toBe(2);
    expect(bulkhead.tryEnter()).toBe(false);
  });

  test('are given back and taken again', () => {
    const { bulkhead, fill } = setup();
    fill();
    bulkhead.leave(0);
    expect(bulkhead.inFlight).toBe(1);
    expect(bulkhead.tryEnter()).toBe(true);
    expect(bulkhead.tryEnter()).toBe(false);
  });

  test('giving back one too many makes no new ones', () => {
    const { bulkhead } = setup();
    bulkhead.leave(0);
    expect(bulkhead.inFlight).toBe(0);
    expect([1, 2, 3].map(() => bulkhead.tryEnter())).toEqual([true, true, false]);
  });

  test('a call that never ends forfeits its permit and is counted as a zombie', () => {
    const { bulkhead, enter, fill, told } = setup();
    fill();
    enter('a');
    bulkhead.forfeit(0);
    expect(told).toEqual(['a admitted']);
    expect(bulkhead.zombies).toBe(1);
    expect(bulkhead.inFlight).toBe(2);
  });

  test('a call that ends while it is being admitted does not go deeper', () => {
    const { bulkhead, call, told } = setup(1, 50_000);
    bulkhead.tryEnter();
    for (let i = 0; i < 50_000; i++) {
      const waiter = call(String(i));
      waiter.reaction = (now) => bulkhead.leave(now);
      bulkhead.enter(0, waiter);
    }
    bulkhead.leave(0);
    expect(told.length).toBe(50_000);
    expect(bulkhead.inFlight).toBe(0);
    expect(bulkhead.queued).toBe(0);
  });

  test('one who enters while others are being admitted waits behind them, although a permit is free', () => {
    const { bulkhead, call, told, enter, fill } = setup(1, 9);
    const entered: number[] = [];
    const first = call('first');
    first.reaction = () => entered.push(enter('intruder'));
    fill();
    bulkhead.enter(0, first);
    enter('second');
    bulkhead.resize(0, { concurrent: 3, queueMax: 9 });
    expect(entered).toEqual([QUEUED]);
    expect(told).toEqual(['first admitted', 'second admitted']);
    bulkhead.leave(0);
    expect(told.at(-1)).toBe('intruder admitted');
  });

  test('a waiter that throws leaves the bulkhead in order', () => {
    const { bulkhead, call, fill, told, enter } = setup();
    fill();
    const waiter = call('thrower');
    waiter.reaction = () => {
      throw new Error('mine');
    };
    bulkhead.enter(0, waiter);
    enter('next');
    expect(() => bulkhead.leave(0)).toThrow('mine');
    expect(bulkhead.inFlight).toBe(2);
    bulkhead.leave(0);
    expect(told).toEqual(['thrower admitted', 'next admitted']);
  });

  test('limits can change while calls are in flight, and nobody loses a permit or a place', () => {
    const { bulkhead, enter, fill, told } = setup(3, 3);
    fill();
    for (const name of ['a', 'b', 'c']) enter(name);
    bulkhead.resize(0, { concurrent: 1, queueMax: 1 });
    expect(bulkhead.inFlight).toBe(3);
    bulkhead.leave(0);
    bulkhead.leave(0);
    expect(told).toEqual([]);
    bulkhead.leave(0);
    expect(told).toEqual(['a admitted']);
    expect(enter('d')).toBe(FULL);
    bulkhead.resize(0, { concurrent: 5, queueMax: 1 });
    expect(told).toEqual(['a admitted', 'b admitted', 'c admitted']);
    expect(bulkhead.inFlight).toBe(3);
  });
});

describe('the queue', () => {
  test('an accepted waiter keeps its place', () => {
    const { bulkhead, enter, fill, told } = setup();
    fill();
    expect(['a', 'b', 'c', 'd'].map((name) => enter(name))).toEqual([QUEUED, QUEUED, QUEUED, FULL]);
    for (let i = 0; i < 5; i++) bulkhead.leave(0);
    expect(told).toEqual(['a admitted', 'b admitted', 'c admitted']);
    expect(bulkhead.inFlight).toBe(0);
  });

  test('can have no places at all', () => {
    const { enter, fill } = setup(1, 0);
    fill();
    expect(enter('a', 0)).toBe(FULL);
  });

  test('serves the more important first, and each priority in its order', () => {
    const { bulkhead, enter, fill, told } = setup(1, 9);
    fill();
    for (const name of ['s1', 'd1', 'c1', 's2', 'd2', 'c2']) enter(name, 'cds'.indexOf(name[0]!));
    for (let i = 0; i < 6; i++) bulkhead.leave(0);
    expect(told.map((line) => line.split(' ')[0])).toEqual(['c1', 'c2', 'd1', 'd2', 's1', 's2']);
  });

  test('serves the newest first where it is told to, but not before the more important', () => {
    const { bulkhead, enter, fill, told } = setup(1, 9);
    fill();
    for (const name of ['d1', 'd2', 'c1', 'c2']) enter(name, 'cds'.indexOf(name[0]!));
    expect(bulkhead.oldest(0)).toMatchObject({ name: 'c1' });
    expect(bulkhead.oldest(2)).toBe(undefined);
    bulkhead.newestFirst = true;
    for (let i = 0; i < 4; i++) bulkhead.leave(0);
    expect(told.map((line) => line.split(' ')[0])).toEqual(['c2', 'c1', 'd2', 'd1']);
  });

  test('when full, the newest of the least important makes way for someone more important', () => {
    const { bulkhead, enter, fill, told } = setup();
    fill();
    for (const name of ['s1', 's2', 'd1']) enter(name, 'cds'.indexOf(name[0]!));
    expect(enter('s3', 2)).toBe(FULL);
    expect(enter('d2', 1)).toBe(QUEUED);
    expect(told).toEqual(['s2 displaced']);
    expect(enter('c1', 0)).toBe(QUEUED);
    expect(enter('d3', 1)).toBe(FULL);
    expect(enter('c2', 0)).toBe(QUEUED);
    expect(told).toEqual(['s2 displaced', 's1 displaced', 'd2 displaced']);
    for (let i = 0; i < 3; i++) bulkhead.leave(0);
    expect(told.slice(3)).toEqual(['c1 admitted', 'c2 admitted', 'd1 admitted']);
  });

  test('nobody is displaced while the queue has room', () => {
    const { enter, fill, told } = setup();
    fill();
    enter('s1', 2);
    enter('c1', 0);
    expect(told).toEqual([]);
  });
});

describe('leaving the queue', () => {
  test('an abandoned waiter leaves at once, and its place is free', () => {
    const { bulkhead, call, enter, fill, told } = setup();
    fill();
    const leaver = call('leaver');
    enter('a');
    bulkhead.enter(0, leaver);
    enter('b');
    expect(bulkhead.abandon(leaver)).toBe(true);
    expect(bulkhead.abandon(leaver)).toBe(false);
    expect(bulkhead.queued).toBe(2);
    expect(enter('c')).toBe(QUEUED);
    for (let i = 0; i < 3; i++) bulkhead.leave(0);
    expect(told).toEqual(['a admitted', 'b admitted', 'c admitted']);
  });

  test('the first, the last and the only one can leave', () => {
    const { bulkhead, call, fill, told, enter } = setup();
    fill();
    const [a, b] = [call('a'), call('b')];
    bulkhead.enter(0, a);
    bulkhead.enter(0, b);
    bulkhead.abandon(a);
    bulkhead.abandon(b);
    expect(bulkhead.queued).toBe(0);
    bulkhead.enter(0, a);
    enter('c');
    bulkhead.abandon(a);
    bulkhead.enter(0, b);
    bulkhead.abandon(b);
    bulkhead.leave(0);
    expect(told).toEqual(['c admitted']);
  });

  test('one who was admitted or never entered cannot abandon', () => {
    const { bulkhead, call, fill } = setup();
    fill();
    const waiter = call('a');
    expect(bulkhead.abandon(waiter)).toBe(false);
    bulkhead.enter(0, waiter);
    bulkhead.leave(0);
    expect(bulkhead.abandon(waiter)).toBe(false);
    expect(bulkhead.queued).toBe(0);
  });

  test('the expired get no permit when their turn comes', () => {
    const { bulkhead, enter, fill, told } = setup();
    fill();
    enter('a', 1, 10);
    enter('b', 1, 20);
    enter('c', 1, 11);
    bulkhead.leave(11);
    expect(told).toEqual(['a expired', 'b admitted']);
    bulkhead.leave(11);
    expect(told).toEqual(['a expired', 'b admitted', 'c expired']);
    expect(bulkhead.inFlight).toBe(1);
  });

  test('when full, the expired are dropped before anyone is refused or displaced', () => {
    const { enter, fill, told } = setup();
    fill();
    enter('a', 2, 30);
    enter('b', 1, 20);
    enter('c', 0, 10);
    expect(enter('d', 1, 100, 9)).toBe(QUEUED);
    expect(told).toEqual(['a displaced']);
    expect(enter('e', 2, 100, 9)).toBe(FULL);
    expect(enter('f', 2, 100, 10)).toBe(QUEUED);
    expect(told).toEqual(['a displaced', 'c expired']);
    expect(enter('g', 2, 100, 19)).toBe(FULL);
    expect(enter('h', 2, 100, 20)).toBe(QUEUED);
    expect(told).toEqual(['a displaced', 'c expired', 'b expired']);
  });

  test('what an expired one does at once meets a queue in order', () => {
    const { bulkhead, call, enter, fill, told } = setup();
    fill();
    const waiter = call('a', 1, 10);
    waiter.reaction = () => expect(enter('again', 1, 100, 10)).toBe(FULL);
    bulkhead.enter(0, waiter);
    enter('b');
    enter('c');
    expect(enter('d', 1, 100, 10)).toBe(QUEUED);
    expect(bulkhead.queued).toBe(3);
    for (let i = 0; i < 3; i++) bulkhead.leave(10);
    expect(told).toEqual(['a expired', 'b admitted', 'c admitted', 'd admitted']);
  });
});

/** The bulkhead as one would explain it: an array, sorted by looking through it. */
interface Model {
  concurrent: number;
  queueMax: number;
  held: number;
  queue: Call[];
  told: string[];
  now: number;
  names: number;
}
interface Real {
  bulkhead: Bulkhead;
  told: string[];
  calls: Call[];
}
type Step = fc.Command<Model, Real>;

function serve(model: Model): void {
  while (model.held < model.concurrent && model.queue.length > 0) {
    const top = Math.min(...model.queue.map((call) => call.priority));
    const next = model.queue.find((call) => call.priority === top)!;
    model.queue.splice(model.queue.indexOf(next), 1);
    const expired = next.expiresAt <= model.now;
    if (!expired) model.held++;
    model.told.push(`${next.name} ${expired ? 'expired' : 'admitted'}`);
  }
}

const step = (name: string, run: (model: Model, real: Real) => void): Step => ({
  check: () => true,
  run(model, real) {
    run(model, real);
    expect([...real.told].sort()).toEqual([...model.told].sort());
    expect(admissions(real.told)).toEqual(admissions(model.told));
    expect(real.bulkhead.inFlight).toBe(model.held);
    expect(real.bulkhead.queued).toBe(model.queue.length);
    expect(real.calls.filter((call) => call.ahead).length).toBe(model.queue.length);
  },
  toString: () => name,
});

function admissions(told: string[]): string[] {
  return told.filter((line) => line.endsWith('admitted'));
}

const steps: fc.Arbitrary<Step>[] = [
  fc
    .tuple(fc.nat(2), fc.oneof(fc.integer({ min: 1, max: 30 }), fc.constant(Infinity)))
    .map(([priority, patience]) =>
      step(`enter, priority ${priority}, for ${patience}`, (model, real) => {
        const call = new Call(real.told, String(model.names++), priority, model.now + patience);
        real.calls.push(call);
        const answer = real.bulkhead.enter(model.now, call);
        if (model.held < model.concurrent && model.queue.length === 0) {
          model.held++;
          expect(answer).toBe(ADMITTED);
          return;
        }
        if (model.queue.length >= model.queueMax) {
          for (const each of model.queue)
            if (each.expiresAt <= model.now) model.told.push(`${each.name} expired`);
          model.queue = model.queue.filter((each) => each.expiresAt > model.now);
        }
        if (model.queue.length >= model.queueMax) {
          const bottom = Math.max(...model.queue.map((each) => each.priority));
          if (bottom > priority) {
            const newest = model.queue.findLast((each) => each.priority === bottom)!;
            model.queue.splice(model.queue.indexOf(newest), 1);
            model.told.push(`${newest.name} displaced`);
          }
        }
        const fits = model.queue.length < model.queueMax;
        if (fits) model.queue.push(call);
        expect(answer).toBe(fits ? QUEUED : FULL);
      }),
    ),
  fc.boolean().map((zombie) =>
    step(zombie ? 'forfeit' : 'leave', (model, real) => {
      if (model.held === 0) return;
      if (zombie) real.bulkhead.forfeit(model.now);
      else real.bulkhead.leave(model.now);
      model.held--;
      serve(model);
    }),
  ),
  fc.nat().map((pick) =>
    step(`abandon ${pick}`, (model, real) => {
      const call = real.calls[pick % real.calls.length];
      if (call === undefined) return;
      const index = model.queue.indexOf(call);
      expect(real.bulkhead.abandon(call)).toBe(index >= 0);
      if (index >= 0) model.queue.splice(index, 1);
    }),
  ),
  fc.nat(12).map((ms) =>
    step(`wait ${ms}`, (model) => {
      model.now += ms;
    }),
  ),
  fc.tuple(fc.integer({ min: 1, max: 4 }), fc.nat(5)).map(([concurrent, queueMax]) =>
    step(`resize to ${concurrent} and ${queueMax}`, (model, real) => {
      real.bulkhead.resize(model.now, { concurrent, queueMax });
      Object.assign(model, { concurrent, queueMax });
      serve(model);
    }),
  ),
];

test('permits are conserved and order is kept, on any story', () => {
  fc.assert(
    fc.property(fc.commands(steps, { maxCommands: 120, size: 'max' }), (commands) => {
      fc.modelRun(
        () => ({
          model: { concurrent: 2, queueMax: 4, held: 0, queue: [], told: [], now: 0, names: 0 },
          real: { bulkhead: new Bulkhead({ concurrent: 2, queueMax: 4 }), told: [], calls: [] },
        }),
        commands,
      );
    }),
    { numRuns: 500 },
  );
});

describe('a reserve', () => {
  test('is for the critical only, and they need not wait behind the others', () => {
    const told: string[] = [];
    const bulkhead = new Bulkhead({ concurrent: 1, queueMax: 4, reserved: 1 });
    const enter = (name: string, priority: number) => bulkhead.enter(0, new Call(told, name, priority));
    expect([enter('a', 1), enter('b', 1), enter('c', 0), enter('d', 0)]).toEqual([
      ADMITTED,
      QUEUED,
      ADMITTED,
      QUEUED,
    ]);
    bulkhead.leave(0);
    expect(told).toEqual(['d admitted']);
    bulkhead.leave(0);
    expect(told).toEqual(['d admitted']);
    bulkhead.leave(0);
    expect(told).toEqual(['d admitted', 'b admitted']);
  });

  test('can be given and taken while calls are in flight', () => {
    const { bulkhead, told, enter, fill } = setup(1, 2);
    fill();
    enter('critical', 0);
    bulkhead.resize(0, { concurrent: 1, queueMax: 2, reserved: 1 });
    expect(told).toEqual(['critical admitted']);
    bulkhead.resize(0, { concurrent: 1, queueMax: 2 });
    expect(bulkhead.tryEnter(0)).toBe(false);
    expect(bulkhead.settings).toEqual({ concurrent: 1, queueMax: 2 });
  });
});
