import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Alarm } from '../src/clock.ts';
import { timerWheel, type Wheel } from '../src/wheel.ts';

const DAY = 86_400_000;

class Bell extends Alarm {
  readonly onRing: (now: number) => void;

  constructor(onRing: (now: number) => void = () => {}) {
    super();
    this.onRing = onRing;
  }

  ring(now: number): void {
    this.onRing(now);
  }
}

function setup(start = 0) {
  const wheel = timerWheel(start);
  const rung: [name: string, now: number][] = [];
  const bell = (name: string, then: () => void = () => {}) =>
    new Bell((now) => {
      rung.push([name, now]);
      then();
    });
  return { wheel, rung, bell, names: () => rung.map(([name]) => name) };
}

describe('ringing', () => {
  test('never rings before its time and never more than a tick after it', () => {
    const { wheel, rung, bell } = setup();
    wheel.set(bell('a'), 10.25);
    wheel.advance(10.2);
    expect(rung).toEqual([]);
    wheel.advance(11);
    expect(rung).toEqual([['a', 11]]);
  });

  test('rings by time, and in the order of setting where the time is the same', () => {
    const { wheel, bell, names } = setup();
    wheel.set(bell('late'), 70_000);
    wheel.set(bell('tie 1'), 5_000);
    wheel.set(bell('early'), 3);
    wheel.set(bell('tie 2'), 5_000);
    wheel.advance(4_990);
    // Set when the hand is near: another level than its elders started on.
    wheel.set(bell('tie 3'), 5_000);
    wheel.advance(DAY);
    expect(names()).toEqual(['early', 'tie 1', 'tie 2', 'tie 3', 'late']);
  });

  test('orders the fractions of one tick', () => {
    const { wheel, bell, names } = setup();
    for (const at of [0.9, 0.1, 0.5, 0.1, 1]) wheel.set(bell(String(at)), at);
    wheel.advance(1);
    expect(names()).toEqual(['0.1', '0.1', '0.5', '0.9', '1']);
  });

  test.each([0.001, 1, 31, 32, 33, 1_023, 1_024, DAY, 30 * DAY, 397 * DAY, 398 * DAY, 4_000 * DAY])(
    'a delay of %d ms is kept to the tick, whether time jumps or goes from wake to wake',
    (delay) => {
      const { wheel, rung, bell } = setup(1_234.5);
      const at = 1_234.5 + delay;
      wheel.set(bell('jump'), at);
      wheel.advance(Math.ceil(at) - 1);
      expect(rung).toEqual([]);
      wheel.advance(at + 1);
      expect(rung.length).toBe(1);

      const start = at + 1;
      wheel.set(bell('stepwise'), start + delay);
      let wakes = 0;
      while (rung.length < 2) {
        expect(wheel.nextAt()).toBeLessThanOrEqual(Math.ceil(start + delay));
        wheel.advance(wheel.nextAt());
        wakes++;
      }
      expect(rung[1]![1]).toBe(Math.ceil(start + delay));
      // One for each level and each full turn of the whole wheel.
      expect(wakes).toBeLessThanOrEqual(8 + delay / 2 ** 35);
      expect(wheel.nextAt()).toBe(Number.POSITIVE_INFINITY);
    },
  );

  test('an alarm at infinity never rings, one at NaN rings at once', () => {
    const { wheel, bell, names } = setup();
    wheel.set(bell('never'), Number.POSITIVE_INFINITY);
    wheel.set(bell('overdue'), Number.NEGATIVE_INFINITY);
    wheel.set(bell('confused'), Number.NaN);
    wheel.advance(1);
    wheel.advance(40_000 * DAY);
    expect(names()).toEqual(['overdue', 'confused']);
    expect(wheel.nextAt()).toBeGreaterThan(40_000 * DAY);
  });

  test('ignores a time that goes back', () => {
    const { wheel, rung, bell } = setup();
    wheel.advance(1_000);
    wheel.set(bell('a'), 1_500);
    wheel.advance(200);
    wheel.advance(Number.NaN);
    expect(rung).toEqual([]);
    wheel.advance(1_500);
    expect(rung).toEqual([['a', 1_500]]);
  });

  test('works on any scale, before zero and in epoch milliseconds', () => {
    for (const start of [-5_000.5, 1.7e12, 8.64e15]) {
      const { wheel, rung, bell } = setup(start);
      wheel.set(bell('a'), start + 40);
      wheel.advance(start + 38);
      expect(rung).toEqual([]);
      wheel.advance(start + 41);
      expect(rung.length).toBe(1);
    }
  });
});

describe('setting and clearing', () => {
  test('a cleared alarm never rings and leaves nothing to wake for', () => {
    const { wheel, rung, bell } = setup();
    const alarm = bell('a');
    wheel.clear(alarm);
    wheel.set(alarm, 5_000);
    wheel.clear(alarm);
    wheel.clear(alarm);
    expect(wheel.nextAt()).toBe(Number.POSITIVE_INFINITY);
    expect(alarm.previous).toBeUndefined();
    expect(alarm.next).toBeUndefined();
    wheel.advance(DAY);
    expect(rung).toEqual([]);
  });

  test('setting again moves an alarm, in either direction', () => {
    const { wheel, rung, bell } = setup();
    const alarm = bell('a');
    wheel.set(alarm, 5_000);
    wheel.set(alarm, 90_000);
    wheel.advance(6_000);
    wheel.set(alarm, 7_000);
    wheel.advance(7_000);
    wheel.advance(DAY);
    expect(rung).toEqual([['a', 7_000]]);
  });

  test('the time to wake is known while everything else was cleared', () => {
    const { wheel, bell } = setup();
    const alarms = Array.from({ length: 500 }, (_, index) => bell(String(index)));
    for (const [index, alarm] of alarms.entries()) wheel.set(alarm, 1 + index * 97);
    for (const alarm of alarms.slice(0, -1)) wheel.clear(alarm);
    const wake = wheel.nextAt();
    expect(wake).toBeGreaterThan(1 + 499 * 97 - 32 ** 3);
    expect(wake).toBeLessThanOrEqual(1 + 499 * 97);
  });
});

describe('inside a ring', () => {
  test('an alarm of the same tick can be cleared or moved before its turn', () => {
    const { wheel, bell, names } = setup();
    const cleared = bell('cleared');
    const moved = bell('moved');
    wheel.set(
      bell('first', () => {
        wheel.clear(cleared);
        wheel.set(moved, 50);
      }),
      5,
    );
    wheel.set(cleared, 5);
    wheel.set(moved, 5);
    wheel.set(bell('last'), 5);
    wheel.advance(5);
    expect(names()).toEqual(['first', 'last']);
    wheel.advance(50);
    expect(names()).toEqual(['first', 'last', 'moved']);
  });

  test('an alarm that sets itself to the past rings once an advance, and the wheel goes on', () => {
    const { wheel, bell, names } = setup();
    const alarm: Alarm = bell('again', () => wheel.set(alarm, 0));
    wheel.set(alarm, 0);
    wheel.advance(30 * DAY);
    expect(names()).toEqual(['again']);
    wheel.advance(30 * DAY + 1);
    expect(names()).toEqual(['again', 'again']);
  });

  test('an error keeps nobody else from ringing and is thrown afterwards', () => {
    const { wheel, bell, names } = setup();
    const thrown = new Error('mine');
    const fail = () => {
      throw thrown;
    };
    wheel.set(bell('bad', fail), 5);
    wheel.set(bell('good'), 5);
    wheel.set(bell('later'), 500);
    expect(() => wheel.advance(1_000)).toThrow(thrown);
    expect(names()).toEqual(['bad', 'good', 'later']);

    wheel.set(bell('worse', fail), 2_000);
    wheel.set(bell('worst', fail), 2_000);
    expect(() => wheel.advance(2_000)).toThrow(AggregateError);
    wheel.set(bell('after'), 3_000);
    wheel.advance(3_000);
    expect(names().at(-1)).toBe('after');
  });

  test('advancing from within a ring does nothing, so each alarm rings once and in order', () => {
    const { wheel, bell, names } = setup();
    wheel.set(
      bell('outer', () => wheel.advance(5_000)),
      5,
    );
    wheel.set(bell('sibling'), 5);
    wheel.set(bell('inner'), 4_000);
    wheel.set(bell('later'), 6_000);
    wheel.advance(10);
    wheel.advance(10_000);
    expect(names()).toEqual(['outer', 'sibling', 'inner', 'later']);
  });
});

/** The same promises, kept by sorting a list. */
interface Waiting {
  id: number;
  at: number;
  tick: number;
  sequence: number;
}

class Naive {
  waiting: Waiting[] = [];
  rung: number[] = [];
  tick = 0;
  sequence = 0;

  set(id: number, at: number): void {
    this.clear(id);
    const rings = at > this.tick ? at : this.tick + 1;
    this.waiting.push({ id, at: rings, tick: Math.ceil(rings), sequence: this.sequence++ });
  }

  clear(id: number): void {
    this.waiting = this.waiting.filter((one) => one.id !== id);
  }

  advance(now: number, habits: Habit[]): void {
    this.tick = Math.max(this.tick, Math.floor(now));
    const due = this.waiting.filter((one) => one.tick <= this.tick);
    due.sort((a, b) => a.at - b.at || a.sequence - b.sequence);
    for (const one of due) {
      if (!this.waiting.includes(one)) continue;
      this.clear(one.id);
      this.rung.push(one.id);
      act(this, habits[one.id], now);
    }
  }
}

/** What an alarm does when it rings. */
type Habit = { other: number; delay?: number; clear?: boolean; fails?: boolean };

function act(
  on: { set(id: number, at: number): void; clear(id: number): void },
  habit: Habit | undefined,
  now: number,
) {
  if (habit === undefined) return;
  if (habit.clear) on.clear(habit.other);
  else if (habit.delay !== undefined) on.set(habit.other, now + habit.delay);
}

const ALARMS = 12;
const anyId = fc.nat(ALARMS - 1);
const anyDelay = fc.oneof(
  fc.constantFrom(0, 0.25, 0.5, 1, 31, 32, 1_024, 32_768, 2 ** 35),
  fc.integer({ min: -50, max: 100 }),
  fc.double({ min: 0, max: 40, noNaN: true }),
  fc.double({ min: 0, max: 2 ** 37, noNaN: true }),
);
const anyHabit = fc.option(
  fc.record({
    other: anyId,
    delay: anyDelay,
    clear: fc.boolean(),
    fails: fc.boolean(),
  }),
  { nil: undefined },
);

interface Real {
  wheel: Wheel;
  alarms: Alarm[];
  rung: number[];
}

interface Model {
  naive: Naive;
  habits: Habit[];
  now: number;
}

const compare = (model: Model, real: Real) => {
  expect(real.rung).toEqual(model.naive.rung);
  const first = Math.min(...model.naive.waiting.map((one) => one.tick));
  if (first === Number.POSITIVE_INFINITY) expect(real.wheel.nextAt()).toBe(first);
  else {
    expect(real.wheel.nextAt()).toBeLessThanOrEqual(first);
    expect(real.wheel.nextAt()).toBeGreaterThan(model.naive.tick);
  }
};

class SetAlarm implements fc.Command<Model, Real> {
  readonly id: number;
  readonly delay: number;
  constructor(id: number, delay: number) {
    this.id = id;
    this.delay = delay;
  }
  check = () => true;
  run(model: Model, real: Real) {
    model.naive.set(this.id, model.now + this.delay);
    real.wheel.set(real.alarms[this.id]!, model.now + this.delay);
    compare(model, real);
  }
  toString = () => `set(${this.id}, +${this.delay})`;
}

class ClearAlarm implements fc.Command<Model, Real> {
  readonly id: number;
  constructor(id: number) {
    this.id = id;
  }
  check = () => true;
  run(model: Model, real: Real) {
    model.naive.clear(this.id);
    real.wheel.clear(real.alarms[this.id]!);
    compare(model, real);
  }
  toString = () => `clear(${this.id})`;
}

class Advance implements fc.Command<Model, Real> {
  readonly by: number;
  constructor(by: number) {
    this.by = by;
  }
  check = () => true;
  run(model: Model, real: Real) {
    const now = model.now + this.by;
    model.now = Math.max(model.now, now);
    if (Math.floor(now) > model.naive.tick) model.naive.advance(now, model.habits);
    try {
      real.wheel.advance(now);
    } catch (error) {
      const errors = error instanceof AggregateError ? error.errors : [error];
      for (const one of errors) expect(one).toMatchObject({ message: 'habit' });
    }
    compare(model, real);
  }
  toString = () => `advance(+${this.by})`;
}

describe('against a sorted list', () => {
  test('rings the same alarms in the same order, whatever is set, cleared, moved or thrown', () => {
    const commands = fc.commands(
      [
        fc.tuple(anyId, anyDelay).map(([id, delay]) => new SetAlarm(id, delay)),
        anyId.map((id) => new ClearAlarm(id)),
        anyDelay.map((by) => new Advance(by)),
      ],
      { maxCommands: 80 },
    );
    fc.assert(
      fc.property(
        fc.array(anyHabit, { minLength: ALARMS, maxLength: ALARMS }),
        fc.double({ min: 0, max: 2 ** 36, noNaN: true }),
        commands,
        (habits, start, plan) => {
          fc.modelRun(() => {
            const wheel = timerWheel(start);
            const rung: number[] = [];
            const alarms = habits.map(
              (habit, id) =>
                new Bell((now) => {
                  rung.push(id);
                  act(
                    {
                      set: (other, at) => wheel.set(alarms[other]!, at),
                      clear: (other) => wheel.clear(alarms[other]!),
                    },
                    habit,
                    now,
                  );
                  if (habit?.fails) throw new Error('habit');
                }),
            );
            const naive = new Naive();
            naive.tick = Math.floor(start);
            const model: Model = { naive, habits: habits as Habit[], now: start };
            return { model, real: { wheel, alarms, rung } };
          }, plan);
        },
      ),
      { numRuns: 1_500 },
    );
  });

  test('going from wake to wake, every alarm rings at its own tick and no wake is wasted twice', () => {
    fc.assert(
      fc.property(fc.array(anyDelay, { maxLength: 50 }), (delays) => {
        const { wheel, rung, bell } = setup();
        for (const [index, delay] of delays.entries()) wheel.set(bell(String(index)), delay);
        let wakes = 0;
        for (let wake = wheel.nextAt(); wake < Number.POSITIVE_INFINITY; wake = wheel.nextAt()) {
          wheel.advance(wake);
          wakes++;
        }
        expect(rung.length).toBe(delays.length);
        for (const [name, now] of rung) expect(now).toBe(Math.max(1, Math.ceil(delays[Number(name)]!)));
        expect(wakes).toBeLessThanOrEqual(delays.length * 8 + 8);
      }),
    );
  });
});
