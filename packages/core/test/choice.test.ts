import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Choice, type ChoiceSettings, TargetHealth } from '../src/machines/choice.ts';

const settings: ChoiceSettings = { consecutive: 5, ejectForMs: [30_000, 300_000] };

/** Repeatable chance: xorshift, from a seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

class Host {
  readonly name: number;
  readonly health = new TargetHealth();
  inFlight = 0;
  refusing = false;
  calls = 0;

  constructor(name: number) {
    this.name = name;
  }

  refuses(): boolean {
    return this.refusing;
  }
}

function setup(count: number, seed = 7_919, overrides: Partial<ChoiceSettings> = {}) {
  const random = chance(seed);
  const hosts = Array.from({ length: count }, (_, i) => new Host(i));
  const choice = new Choice<Host>({ ...settings, ...overrides }, random);
  const settle = (host: Host, now: number, outcomes: string, ms = 10) => {
    for (const outcome of outcomes) host.health.settle(now, ms, outcome === '.');
  };
  const away = (now: number) =>
    hosts.filter(({ health }) => now < health.ejectedUntil).map(({ name }) => name);
  /** Chooses many times without settling, and counts. */
  const draw = (now: number, times = 1_000) => {
    const counts = hosts.map(() => 0);
    for (let i = 0; i < times; i++) {
      const host = choice.choose(hosts, now);
      if (host) counts[host.name]!++;
    }
    return counts;
  };
  return { hosts, choice, random, settle, away, draw };
}

describe('of two, the better', () => {
  test('equals are chosen equally', () => {
    const { draw } = setup(4);
    for (const count of draw(0, 10_000)) expect(count / 10_000).toBeCloseTo(0.25, 1);
  });

  test('fewer calls in flight win, and the worst of all is never chosen', () => {
    const { hosts, draw } = setup(3);
    hosts[0]!.inFlight = 2;
    hosts[1]!.inFlight = 1;
    const counts = draw(0);
    expect(counts[0]).toBe(0);
    expect(counts[2]).toBeGreaterThan(counts[1]!);
  });

  test('less latency wins, in proportion to what is in flight', () => {
    const { hosts, settle, draw } = setup(2);
    settle(hosts[0]!, 0, '.', 100);
    settle(hosts[1]!, 0, '.', 10);
    hosts[1]!.inFlight = 8;
    expect(draw(0)).toEqual([0, 1_000]);
    hosts[1]!.inFlight = 10;
    expect(draw(0)).toEqual([1_000, 0]);
  });

  test('a newcomer is taken to be like the others', () => {
    const { hosts, settle, draw } = setup(2);
    settle(hosts[0]!, 0, '.', 100);
    hosts[1]!.inFlight = 1;
    expect(draw(0)).toEqual([1_000, 0]);
    hosts[0]!.inFlight = 2;
    expect(draw(0)).toEqual([0, 1_000]);
  });

  test('what was slow once is tried again after a while', () => {
    const { hosts, settle, draw } = setup(2);
    settle(hosts[0]!, 0, '.', 1_000);
    settle(hosts[1]!, 5_000, '.', 10);
    expect(draw(5_000)).toEqual([0, 1_000]);
    settle(hosts[1]!, 12_000, '.', 10);
    expect(draw(12_000)).toEqual([1_000, 0]);
  });
});

describe('a failure never makes a candidate attractive', () => {
  test('a quick refusal does not lower its latency', () => {
    const { hosts, settle } = setup(1);
    settle(hosts[0]!, 0, '.', 100);
    settle(hosts[0]!, 0, 'xxxx', 1);
    expect(hosts[0]!.health.latencyMs(0)).toBe(100);
    settle(hosts[0]!, 0, 'x', 600);
    expect(hosts[0]!.health.latencyMs(0)).toBe(200);
  });

  test('one that only ever failed has no latency to show', () => {
    const { hosts, settle, draw } = setup(2);
    settle(hosts[0]!, 0, 'x', 1);
    settle(hosts[1]!, 0, '.', 100);
    hosts[1]!.inFlight = 9;
    expect(draw(0)).toEqual([0, 1_000]);
  });

  test('it outweighs an empty line, and is forgotten after half a minute', () => {
    const { hosts, settle, draw } = setup(2);
    settle(hosts[0]!, 0, '.x');
    for (const now of [0, 15_000]) {
      settle(hosts[1]!, now, '.');
      hosts[1]!.inFlight = 4;
      expect(draw(now)).toEqual([0, 1_000]);
    }
    settle(hosts[1]!, 30_000, '.');
    expect(draw(30_000)).toEqual([1_000, 0]);
  });
});

describe('preferences', () => {
  test('another one on a retry, and the same if there is no other', () => {
    const { hosts, choice } = setup(3);
    const [a, b, c] = hosts as [Host, Host, Host];
    for (let i = 0; i < 100; i++) expect(choice.choose(hosts, 0, new Set([a, b]))).toBe(c);
    c.refusing = true;
    for (let i = 0; i < 100; i++) expect([a, b]).toContain(choice.choose(hosts, 0, new Set([a, b, c])));
  });

  test('never one that refuses', () => {
    const { hosts, draw, choice } = setup(3);
    hosts[1]!.refusing = true;
    expect(draw(0)[1]).toBe(0);
    for (const host of hosts) host.refusing = true;
    expect(choice.choose(hosts, 0)).toBe(undefined);
    expect(choice.choose([], 0)).toBe(undefined);
  });

  test('never one that has refused this call already', () => {
    const { hosts, choice } = setup(2);
    const [a, b] = hosts as [Host, Host];
    for (let i = 0; i < 100; i++) expect(choice.choose(hosts, 0, undefined, new Set([a]))).toBe(b);
    expect(choice.choose(hosts, 0, undefined, new Set([a, b]))).toBe(undefined);
  });

  test('one that was sent away only when all the others refuse', () => {
    const { hosts, settle, draw, choice } = setup(2);
    settle(hosts[0]!, 0, 'xxxxx');
    hosts[1]!.inFlight = 1_000;
    expect(draw(0)).toEqual([0, 1_000]);
    expect(choice.choose(hosts, 0, new Set([hosts[1]!]))).toBe(hosts[1]);
    hosts[1]!.refusing = true;
    expect(choice.choose(hosts, 0)).toBe(hosts[0]);
  });

  test('a candidate that is the only one left of many is found', () => {
    const { hosts, choice } = setup(200);
    for (const host of hosts) host.refusing = host.name !== 137;
    for (let i = 0; i < 50; i++) expect(choice.choose(hosts, 0)).toBe(hosts[137]);
  });
});

describe('sending away', () => {
  test.each([2, 5, 7])('happens after %d failures in a row, as set', (consecutive) => {
    const { hosts, settle, draw, away } = setup(4, 1, { consecutive });
    settle(hosts[0]!, 0, 'x'.repeat(consecutive - 1));
    draw(0);
    expect(away(0)).toEqual([]);
    settle(hosts[0]!, 0, 'x');
    draw(0);
    expect(away(0)).toEqual([0]);
  });

  test('happens to one while half of the others are failing, and not while more are', () => {
    for (const failing of [2, 3]) {
      const { hosts, settle, draw, away } = setup(5);
      for (const host of hosts.slice(0, failing)) settle(host, 0, 'x');
      settle(hosts[4]!, 0, 'xxxxx');
      draw(0);
      expect(away(0)).toEqual(failing === 2 ? [4] : []);
    }
  });

  test.each([
    [1, 0],
    [2, 1],
    [3, 1],
    [4, 2],
  ])('of %d takes %d at most', (count, most) => {
    const { hosts, settle, draw, away } = setup(count);
    for (let i = 0; i < count; i++) {
      settle(hosts[i]!, 0, 'xxxxx');
      draw(0);
    }
    expect(away(0).length).toBe(most);
  });

  test('happens when one fails far more often than the others', () => {
    const { hosts, settle, draw, away } = setup(4);
    let rounds = 0;
    for (; away(0).length === 0; rounds++) {
      for (const host of hosts) settle(host, 0, host.name === 0 ? '.x' : '..');
      draw(0, 50);
    }
    expect(away(0)).toEqual([0]);
    expect(rounds).toBeGreaterThan(5);
    expect(rounds).toBeLessThan(15);
  });

  test('does not happen for failures that all have in common', () => {
    const { hosts, settle, draw, away } = setup(10);
    const random = chance(3);
    for (let i = 0; i < 2_000; i++) {
      for (const host of hosts) settle(host, 0, random() < 0.05 ? 'x' : '.');
      draw(0, 5);
    }
    expect(away(0)).toEqual([]);
    for (let i = 0; i < 200; i++) {
      for (const host of hosts) settle(host, 0, 'x');
      draw(0, 5);
    }
    expect(away(0)).toEqual([]);
  });

  test('lasts longer each time, and the first failure after it is enough', () => {
    const { hosts, settle, draw, away } = setup(4);
    settle(hosts[0]!, 0, 'xxxxx');
    let now = 0;
    for (let times = 1; times <= 12; times++) {
      draw(now);
      expect(away(now)).toEqual([0]);
      const forMs = hosts[0]!.health.ejectedUntil - now;
      const most = Math.min(300_000, 30_000 * times);
      expect(forMs).toBeLessThanOrEqual(most);
      expect(forMs).toBeGreaterThanOrEqual(most / 2);
      now += forMs;
      expect(draw(now)[0]).toBeGreaterThan(100);
      settle(hosts[0]!, now, 'x');
    }
  });

  test('is forgiven after it has done well', () => {
    const { hosts, settle, draw } = setup(4);
    settle(hosts[0]!, 0, 'xxxxx');
    draw(0);
    expect(hosts[0]!.health.ejections).toBe(1);
    settle(hosts[0]!, 40_000, '.'.repeat(50));
    expect(hosts[0]!.health.ejections).toBe(0);
  });

  test('late failures do not send away anew', () => {
    const { hosts, settle, draw } = setup(4);
    settle(hosts[0]!, 0, 'xxxxx');
    draw(0);
    const until = hosts[0]!.health.ejectedUntil;
    settle(hosts[0]!, 1, 'xxxxxxx');
    draw(1);
    draw(until);
    expect(hosts[0]!.health.ejectedUntil).toBe(until);
    expect(hosts[0]!.health.ejections).toBe(1);
  });

  test('never takes more than half, and there is always a choice while one does not refuse', () => {
    const event = fc.record({
      host: fc.nat(9),
      what: fc.constantFrom('fails', 'fails', 'fails', 'succeeds', 'refuses', 'returns'),
      waitMs: fc.constantFrom(0, 0, 0, 10, 20_000),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10 }),
        fc.array(event, { maxLength: 300, size: 'max' }),
        fc.integer({ min: 1 }),
        (count, events, seed) => {
          const { hosts, choice, settle, away } = setup(count, seed);
          let now = 0;
          for (const { host: index, what, waitMs } of events) {
            now += waitMs;
            const host = hosts[index % count]!;
            if (what === 'fails') settle(host, now, 'xx');
            if (what === 'succeeds') settle(host, now, '.');
            if (what === 'refuses') host.refusing = true;
            if (what === 'returns') host.refusing = false;
            const chosen = choice.choose(hosts, now, new Set([host]));
            expect(chosen !== undefined).toBe(hosts.some((each) => !each.refusing));
            expect(chosen?.refusing ?? false).toBe(false);
            expect(away(now).length).toBeLessThanOrEqual(count / 2);
          }
        },
      ),
    );
  });
});

/** Ten hosts with ten workers each; every call takes 50 ms on average, and what `fate` says may fail at once. */
function traffic(
  seconds: number,
  perSecond: number,
  fate: (host: Host, now: number) => 'ok' | 'fails' | 'slow',
) {
  const { hosts, choice, random } = setup(10);
  const ending: { at: number; host: Host; ms: number; ok: boolean }[] = [];
  let served = 0;
  let calls = 0;
  for (let now = 0; now < seconds * 1_000; now += 1_000 / perSecond) {
    ending.sort((a, b) => a.at - b.at);
    while (ending.length > 0 && ending[0]!.at <= now) {
      const { host, ms, ok } = ending.shift()!;
      host.inFlight--;
      host.health.settle(now, ms, ok);
    }
    calls++;
    const tried = new Set<Host>();
    for (let attempt = 0; attempt < 2; attempt++) {
      const host = choice.choose(hosts, now, tried)!;
      tried.add(host);
      host.calls++;
      const happens = fate(host, now);
      if (happens === 'fails') {
        host.health.settle(now, 0.5, false);
        continue;
      }
      const ms = -Math.log(1 - random()) * (happens === 'slow' ? 500 : 50);
      host.inFlight++;
      ending.push({ at: now + ms, host, ms, ok: true });
      served++;
      break;
    }
  }
  return { hosts, served: served / calls, shareOf: (name: number) => hosts[name]!.calls / calls };
}

describe('one of ten hosts', () => {
  test('that is dead gets less than 1 % of the calls, although it fails fast', () => {
    const { shareOf, served } = traffic(60, 500, (host) => (host.name === 0 ? 'fails' : 'ok'));
    expect(shareOf(0)).toBeLessThan(0.01);
    expect(served).toBe(1);
  });

  test('that refuses every other call gets less than a fair share', () => {
    let turn = 0;
    const { shareOf } = traffic(60, 500, (host) => (host.name === 0 && turn++ % 2 === 0 ? 'fails' : 'ok'));
    expect(shareOf(0)).toBeLessThan(0.02);
  });

  test('that is ten times as slow gets far less than the others', () => {
    const { shareOf } = traffic(60, 500, (host) => (host.name === 0 ? 'slow' : 'ok'));
    expect(shareOf(0)).toBeLessThan(0.03);
    expect(shareOf(0)).toBeGreaterThan(0);
  });

  test('that was dead for 20 s has its share again within a minute', () => {
    const fate = (host: Host, now: number) => (host.name === 0 && now < 20_000 ? 'fails' : 'ok');
    const before = traffic(80, 500, fate).hosts[0]!.calls;
    const after = traffic(100, 500, fate).hosts[0]!.calls;
    expect((after - before) / (20 * 500)).toBeGreaterThan(0.07);
  });
});
