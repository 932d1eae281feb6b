import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OVERFLOW, Targets } from '../src/machines/targets.ts';

interface Thing {
  readonly name: string;
  idle: boolean;
}

function setup(targetsMax: number) {
  const created: string[] = [];
  const targets = new Targets<Thing>({
    targetsMax,
    create(name) {
      created.push(name);
      return { name, idle: false };
    },
    idle: (thing) => thing.idle,
  });
  return { targets, created, names: () => [...targets].map(([name]) => name) };
}

test('a target is made once and kept', () => {
  const { targets, created } = setup(10);
  expect(targets.get('a', 0)).toBe(targets.get('a', 5));
  expect(targets.get('b', 0)).not.toBe(targets.get('a', 0));
  expect(created).toEqual(['a', 'b']);
  expect(targets.size).toBe(2);
});

test('when it is full, strangers share one target and the others keep their own', () => {
  const { targets, names } = setup(2);
  const [a, b] = [targets.get('a', 0), targets.get('b', 0)];
  expect(targets.get('c', 0)).toBe(targets.get('d', 0));
  expect(targets.get('c', 0).name).toBe(OVERFLOW);
  expect([targets.get('a', 0), targets.get('b', 0)]).toEqual([a, b]);
  expect(names()).toEqual(['a', 'b', OVERFLOW]);
});

test('an idle target makes way for a stranger, and a busy one never does', () => {
  const { targets, names } = setup(3);
  for (const name of ['a', 'b', 'c']) targets.get(name, 0);
  targets.get('b', 0).idle = true;
  expect(targets.get('d', 0).name).toBe('d');
  expect(names()).toEqual(['a', 'c', 'd']);
  expect(targets.get('e', 0).name).toBe(OVERFLOW);
});

test('asks how idle a target is as of now', () => {
  const targets = new Targets<Thing>({
    targetsMax: 1,
    create: (name) => ({ name, idle: false }),
    idle: (_thing, now) => now >= 100,
  });
  targets.get('a', 0);
  expect(targets.get('b', 99).name).toBe(OVERFLOW);
  expect(targets.get('b', 100).name).toBe('b');
});

test('a stranger looks at a few targets only, and the next goes on from there', () => {
  const { targets } = setup(1_000);
  for (let i = 0; i < 1_000; i++) targets.get(String(i), 0);
  targets.get('999', 0).idle = true;
  let strangers = 0;
  while (targets.get(`stranger ${strangers}`, 0).name === OVERFLOW) strangers++;
  expect(strangers).toBeGreaterThan(50);
  expect(strangers).toBeLessThan(130);
});

test('memory is bounded and no busy target is ever lost, whatever names arrive', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(30), fc.boolean()), { maxLength: 300, size: 'max' }), (uses) => {
      const { targets } = setup(5);
      const busy = new Map<string, Thing>();
      for (const [id, idle] of uses) {
        const name = String(id);
        const thing = targets.get(name, 0);
        expect([name, OVERFLOW]).toContain(thing.name);
        if (busy.has(name)) expect(thing).toBe(busy.get(name));
        if (thing.name !== OVERFLOW) {
          thing.idle = idle;
          if (idle) busy.delete(name);
          else busy.set(name, thing);
        }
        expect(targets.size).toBeLessThanOrEqual(5);
      }
    }),
  );
});
