import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Alarm } from '../src/time/clock.ts';
import { later, systemClock, systemRandom } from '../src/time/system-clock.ts';

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

afterEach(() => {
  // Spies sit on the fake timers: they go first, or they would put those back.
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** The host's timers under our hand, counted. */
function setup() {
  vi.useFakeTimers();
  const armed = vi.spyOn(globalThis, 'setTimeout');
  const rung: [name: string, at: number][] = [];
  const start = systemClock.now();
  const bell = (name: string) => new Bell((now) => rung.push([name, now - start]));
  const set = (alarm: Alarm, delay: number) => systemClock.set(alarm, start + delay);
  return { armed, rung, bell, set };
}

describe('alarms', () => {
  test('ring in order, from one host timer at a time', () => {
    const { rung, bell, set } = setup();
    for (const delay of [500, 20, 20, 3_000, 0]) set(bell(String(delay)), delay);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(10_000);
    expect(rung.map(([name]) => name)).toEqual(['0', '20', '20', '500', '3000']);
    for (const [name, at] of rung) {
      expect(at).toBeGreaterThanOrEqual(Number(name));
      expect(at).toBeLessThanOrEqual(Number(name) + 2);
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a later alarm does not touch the host timer, an earlier one arms it anew', () => {
    const { armed, bell, set } = setup();
    set(bell('first'), 1_000);
    for (let delay = 1_000; delay < 2_000; delay++) set(bell('later'), delay);
    expect(armed).toHaveBeenCalledTimes(1);
    set(bell('earlier'), 500);
    expect(armed).toHaveBeenCalledTimes(2);
    expect(vi.getTimerCount()).toBe(1);
  });

  test('are never rung by setting them, however overdue', () => {
    const { rung, bell, set } = setup();
    set(bell('overdue'), -10_000);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(2);
    expect(rung.length).toBe(1);
  });

  test('that are overdue ask the host for no wait, not for one below zero', () => {
    const { armed, bell, set } = setup();
    set(bell('overdue'), -50);
    expect(armed.mock.lastCall?.[1]).toBe(0);
  });

  test('can be farther away than a host timer reaches', () => {
    const { rung, bell, set } = setup();
    const month = 30 * 86_400_000;
    set(bell('month'), month);
    vi.advanceTimersByTime(month - 1);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(2);
    expect(rung.length).toBe(1);
  });

  test('set while another rings need no host timer of their own', () => {
    const { armed, rung, bell, set } = setup();
    const chain = new Bell(() => {
      for (const delay of [30, 20, 25]) set(bell(String(delay)), delay);
    });
    set(chain, 10);
    vi.advanceTimersByTime(11);
    expect(armed).toHaveBeenCalledTimes(2);
    vi.advanceTimersByTime(100);
    expect(rung.map(([name]) => name)).toEqual(['20', '25', '30']);
  });

  test('that throw reach the host, and the rest still rings', () => {
    const { rung, bell, set } = setup();
    set(
      new Bell(() => {
        throw new Error('mine');
      }),
      10,
    );
    set(bell('same tick'), 10);
    set(bell('later'), 50);
    expect(() => vi.advanceTimersByTime(20)).toThrow('mine');
    vi.advanceTimersByTime(100);
    expect(rung.map(([name]) => name)).toEqual(['same tick', 'later']);
  });
});

describe('when idle', () => {
  test('the host timer stops once the thread is free, not with each call', () => {
    const { armed, bell, set } = setup();
    const stopped = vi.spyOn(globalThis, 'clearTimeout');
    const looked = vi.spyOn(globalThis, 'setImmediate');
    const alarm = bell('deadline');
    for (let call = 0; call < 1_000; call++) {
      set(alarm, 10_000 + call);
      systemClock.clear(alarm);
    }
    expect(armed).toHaveBeenCalledTimes(1);
    expect(looked).toHaveBeenCalledTimes(1);
    stopped.mockClear();
    vi.advanceTimersByTime(1);
    expect(stopped).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('an alarm set before the look keeps the timer', () => {
    const { rung, bell, set } = setup();
    const alarm = bell('first');
    set(alarm, 1_000);
    systemClock.clear(alarm);
    set(bell('second'), 2_000);
    vi.advanceTimersByTime(1);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(3_000);
    expect(rung.map(([name]) => name)).toEqual(['second']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a host without setImmediate looks from a timer', () => {
    const { bell, set } = setup();
    vi.stubGlobal('setImmediate', undefined);
    try {
      const alarm = bell('deadline');
      set(alarm, 10_000);
      systemClock.clear(alarm);
      vi.advanceTimersByTime(1);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.unstubAllGlobals();
    }
  });

  test('the process is free to end, and a waiting one is kept alive', async () => {
    const source = new URL('../src/', import.meta.url);
    const script = `
      import { Alarm } from '${new URL('time/clock.ts', source)}';
      import { systemClock } from '${new URL('time/system-clock.ts', source)}';
      class Bell extends Alarm { ring() { console.log('rang'); } }
      const cleared = new Bell();
      systemClock.set(cleared, systemClock.now() + 3_600_000);
      systemClock.set(new Bell(), systemClock.now() + 5);
      systemClock.clear(cleared);
    `;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'pipe' });
    let printed = '';
    child.stdout.on('data', (chunk) => {
      printed += chunk;
    });
    const [code] = await once(child, 'close');
    expect([code, printed]).toEqual([0, 'rang\n']);
  });
});

describe('under fake timers', () => {
  test('works in each world when a test swaps the timers and leaves work behind', async () => {
    vi.useFakeTimers();
    const left = new Bell();
    systemClock.set(left, systemClock.now() + 10_000);
    const abandoned = new Bell();
    systemClock.set(abandoned, systemClock.now() + 50);
    systemClock.clear(abandoned);
    vi.advanceTimersByTime(5_000);

    vi.useRealTimers();
    const now = await new Promise<number>((resolve) => {
      systemClock.set(new Bell(resolve), systemClock.now() + 3);
    });
    expect(now).toBeLessThanOrEqual(systemClock.now());
    systemClock.clear(left);
  });
});

describe('real time', () => {
  test('a thread that was busy hears what has arrived before it gives up on it', async () => {
    const heard: string[] = [];
    const rung = Promise.withResolvers<void>();
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => heard.push('answer');
    systemClock.set(
      new Bell(() => {
        heard.push('alarm');
        rung.resolve();
      }),
      systemClock.now() + 5,
    );
    port2.postMessage('answer');
    for (const until = performance.now() + 20; performance.now() < until; );
    await rung.promise;
    port1.close();
    expect(heard).toEqual(['answer', 'alarm']);
  });

  test('rings at or after the time asked for, and tells it', async () => {
    const at = systemClock.now() + 4.5;
    const now = await new Promise<number>((resolve) => systemClock.set(new Bell(resolve), at));
    expect(now).toBeGreaterThanOrEqual(at);
  });

  test('now never goes back, and the epoch is the wall clock', () => {
    const first = systemClock.now();
    expect(systemClock.now()).toBeGreaterThanOrEqual(first);
    expect(Math.abs(systemClock.epochMs() - Date.now())).toBeLessThan(1_000);
  });

  test('chance is in [0, 1)', () => {
    for (let draw = 0; draw < 100; draw++) {
      const roll = systemRandom();
      expect(roll).toBeGreaterThanOrEqual(0);
      expect(roll).toBeLessThan(1);
    }
  });
});

test('later lets go of the thread, so that others are heard first', async () => {
  const order: string[] = [];
  await new Promise<void>((resolve) => {
    later(() => {
      order.push('later');
      resolve();
    });
    queueMicrotask(() => queueMicrotask(() => order.push('promises')));
  });
  expect(order).toEqual(['promises', 'later']);
});
