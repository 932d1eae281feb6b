import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { causesOf } from '../src/classify/causes-of.ts';
import { fnv1a } from '../src/policy/fnv1a.ts';
import { virtualClock } from '../src/testing.ts';
import { sleep, Timer } from '../src/time/timer.ts';

test('a timer calls back at its time, can be moved and cleared', async () => {
  const clock = virtualClock();
  const callback = vi.fn();
  const timer = new Timer(clock, callback);
  timer.setIn(10);
  timer.setAt(clock.now() + 20);
  expect(timer.isSet).toBe(true);
  await clock.advance(19);
  expect(callback).not.toHaveBeenCalled();
  await clock.advance(1);
  expect(callback).toHaveBeenCalledExactlyOnceWith(clock.now());
  expect(timer.isSet).toBe(false);
  timer.setIn(5);
  timer.clear();
  await clock.advance(10);
  expect(callback).toHaveBeenCalledTimes(1);
});

test('sleep ends at its time or with its signal, and leaves nothing behind', async () => {
  const clock = virtualClock();
  const controller = new AbortController();
  const asleep = sleep(clock, 100, controller.signal);
  const other = sleep(clock, 50, controller.signal);
  expect(getEventListeners(controller.signal, 'abort').length).toBe(1);
  await clock.advance(50);
  await other;
  controller.abort('left');
  await expect(asleep).rejects.toBe('left');
  await expect(sleep(clock, 1, controller.signal)).rejects.toBe('left');
  expect(getEventListeners(controller.signal, 'abort').length).toBe(0);
  expect(clock.pendingTimers).toBe(0);
});

test('causes are found once each, sixteen at most, past circles and getters that throw', () => {
  const inner = new Error('inner');
  const outer = new AggregateError([inner, new Error('beside', { cause: inner })], 'outer');
  inner.cause = outer;
  expect(causesOf(outer).map(({ message }) => message)).toEqual(['outer', 'inner', 'beside']);
  let deep = new Error('0');
  for (let n = 1; n < 40; n++) deep = new Error(`${n}`, { cause: deep });
  expect(causesOf(deep).length).toBe(16);
  const hostile = Object.defineProperty({}, 'cause', {
    get() {
      throw new Error('not yours');
    },
  });
  expect(causesOf(new Error('around', { cause: hostile })).length).toBe(2);
  expect(causesOf('a text')).toEqual([]);
});

test('fnv1a is FNV-1a', () => {
  // From the tables of its authors.
  expect(fnv1a('')).toBe(0x811c9dc5);
  expect(fnv1a('a')).toBe(0xe40c292c);
  expect(fnv1a('foobar')).toBe(0xbf9cf968);
});
