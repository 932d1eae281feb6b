import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AlarmHeap } from '../src/time/alarm-heap.ts';
import { Alarm } from '../src/time/clock.ts';

class Bell extends Alarm {
  ring(): void {}
}

function drain(heap: AlarmHeap): Alarm[] {
  const order: Alarm[] = [];
  for (let { first } = heap; first; { first } = heap) {
    heap.clear(first);
    order.push(first);
  }
  return order;
}

test('gives alarms by time, and in the order of setting where the time is the same', () => {
  const heap = new AlarmHeap();
  const bells = [30, 10, 20, 10, 30, 10].map((at) => {
    const bell = new Bell();
    heap.set(bell, at);
    return bell;
  });
  expect(drain(heap)).toEqual([bells[1], bells[3], bells[5], bells[2], bells[0], bells[4]]);
});

test('a time that is no number, or before all time, is due at once', () => {
  const heap = new AlarmHeap();
  for (const at of [Number.NaN, -5, -Infinity]) {
    const bell = new Bell();
    heap.set(bell, at);
    expect(bell.at).toBe(0);
  }
});

test('clearing an alarm that is not set, or is set elsewhere, changes nothing', () => {
  const heap = new AlarmHeap();
  const other = new AlarmHeap();
  const [here, there] = [new Bell(), new Bell()];
  heap.set(here, 1);
  other.set(there, 2);
  heap.clear(there);
  heap.clear(new Bell());
  expect([heap.first, other.first]).toEqual([here, there]);
});

test('whatever is set, moved and cleared, the next is always the earliest', () => {
  const steps = fc.array(
    fc.record({ bell: fc.nat(30), at: fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }) }),
    { maxLength: 400, size: 'max' },
  );
  fc.assert(
    fc.property(steps, (made) => {
      const heap = new AlarmHeap();
      const bells = Array.from({ length: 31 }, () => new Bell());
      let model: { bell: Bell; at: number }[] = [];
      for (const { bell: index, at } of made) {
        const bell = bells[index]!;
        model = model.filter((each) => each.bell !== bell);
        if (at === undefined) heap.clear(bell);
        else {
          heap.set(bell, at);
          model.push({ bell, at });
        }
        // Sorting is stable, so those of one time stay in the order of setting.
        model.sort((a, b) => a.at - b.at);
        expect(heap.size).toBe(model.length);
        expect(heap.first).toBe(model[0]?.bell);
      }
      expect(drain(heap)).toEqual(model.map(({ bell }) => bell));
    }),
  );
});
