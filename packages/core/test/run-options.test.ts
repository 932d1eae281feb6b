import { expect, onTestFinished, test, vi } from 'vitest';
import { permanent } from '../src/classify/marks.ts';
import { retry } from '../src/parts/retry.ts';
import { policy } from '../src/policy/all-parts.ts';
import { definePolicy } from '../src/policy/policy.ts';
import { type Notice, subscribe } from '../src/report/notices.ts';
import { storyOf } from '../src/report/story.ts';
import type { RunOptions } from '../src/run/run-options.ts';

const made = policy();

test('an unlimited patience can be said', async () => {
  expect(await made.run(() => 1, { patience: Infinity })).toBe(1);
});

test('options with no targets to choose from are refused, and nothing is called', async () => {
  const operation = vi.fn();
  const error = { path: 'targets', message: 'targets: expected at least one target, got []' };
  expect(await made.try(operation, { targets: [] })).toMatchObject({ ok: false, error });
  await expect(made.run(operation, { targets: [] })).rejects.toMatchObject(error);
  expect(operation).not.toHaveBeenCalled();
});

test.each<[unknown, string]>([
  [Promise.resolve(1), '"a promise"'],
  [undefined, 'undefined'],
  [{}, '{}'],
])('an operation that is not a function is refused, and nothing is counted: %s', async (wrong, got) => {
  const sentence = `operation: expected a function that returns a promise, such as () => fetch(url), got ${got}`;
  for (const made of [
    policy(),
    definePolicy([retry])(),
    policy({ fallback: { to: () => 0 }, retryOn: 'any' }),
  ]) {
    for (const running of [made.run(wrong as never), made.try(wrong as never)])
      await expect(running).rejects.toMatchObject({ code: 'HOLDFAST_OPTIONS', message: sentence });
    expect(made.counters.operations).toBe(0);
  }
});

test('options that are null are not said', async () => {
  const nothing = { targets: null, patience: null, signal: null } as never;
  expect(await made.run(() => 1, nothing)).toBe(1);
  expect(await made.try(() => 2, nothing)).toMatchObject({ ok: true });
});

test('a key that is null is not one that everybody shares, nor is such a target', async () => {
  const cached = policy({ cache: { fresh: '1m' } });
  const said = { cacheKey: null, target: null } as never;
  expect([await cached.run(() => 'mine', said), await cached.run(() => 'yours', said)]).toEqual([
    'mine',
    'yours',
  ]);
  await cached.run(() => 'nobody’s');
  expect([...cached.plan.everyTarget!()].map(({ name }) => name)).toEqual([undefined]);
});

test.each<[object, string]>([
  [{ patience: 'soon' }, 'patience: expected a duration such as "200ms", got "soon"'],
  [{ signal: 'now' }, 'signal: expected an AbortSignal, got "now"'],
  [{ signal: {} }, 'signal: expected an AbortSignal, got {}'],
  [{ target: 5 }, 'target: expected a text, got 5'],
  [{ target: '' }, 'target: expected a text, got ""'],
  [{ patience: -1 }, 'patience: expected a duration such as "200ms", got -1'],
  [{ targets: 'a' }, 'targets: expected a list of texts, got "a"'],
  [{ targets: [5] }, 'targets: expected a list of texts, got [5]'],
  [{ idempotent: 'no' }, 'idempotent: expected true or false, got "no"'],
  [{ classify: 'http' }, 'classify: expected a function, got "http"'],
  [{ priority: 'urgent' }, 'priority: expected one of critical, default, sheddable, got "urgent"'],
  [{ pateince: '1s' }, 'pateince: not an option; did you mean patience?'],
  [{ constructor: '1s' }, 'constructor: not an option; there are patience, signal, target'],
  [{ attempts: 3 }, 'attempts: not an option; did you mean attempts, in policy()?'],
  [{ backoff: false }, 'backoff: not an option; did you mean backoff, in policy()?'],
  [
    { retries: 3 },
    'retries: not an option; did you mean attempts: 4, which counts the first one, in policy()?',
  ],
  [{ timeout: '1s' }, 'timeout: not an option; did you mean patience?'],
])('%j is refused before anything is called', async (wrong, sentence) => {
  const operation = vi.fn(() => 1);
  for (const made of [policy(), definePolicy([retry])()]) {
    await expect(made.run(operation, wrong as RunOptions)).rejects.toThrow(sentence);
    await expect(made.try(operation, wrong as RunOptions)).rejects.toThrow(sentence);
    expect(made.counters.operations).toBe(0);
  }
  expect(operation).not.toHaveBeenCalled();
});

test('a classifier that throws ends the retries, and somebody is told', async () => {
  const heard: Notice[] = [];
  onTestFinished(subscribe((notice) => heard.push(notice)));
  const down = Object.assign(new Error('down'), { code: 'ECONNRESET' });
  const classify = () => {
    throw new Error('my mistake');
  };
  await expect(made.run(() => Promise.reject(down), { classify })).rejects.toBe(down);
  expect(storyOf(down)).toMatchObject({ attempts: 1, stop: 'not_retryable' });
  expect(heard).toContainEqual(
    expect.objectContaining({ type: 'unreadable_hint', hint: 'a classifier threw my mistake' }),
  );
});

test('the options of a run that only Holdfast sets are not listed', async () => {
  const wrong = { xyz: 1 } as RunOptions;
  await expect(made.run(() => 1, wrong)).rejects.toThrow(/there are (?!.*observed)/);
});

test('the options of a run are never changed', async () => {
  const made = policy({ fallback: { to: 1, reserve: '1s' }, cache: true });
  const options: RunOptions = { cacheKey: 'a', patience: '2s', targets: ['a', 'b'] };
  const before = structuredClone(options);
  const frozen = Object.freeze({ ...options, cacheKey: 'b', targets: Object.freeze(['a', 'b']) });
  for (const each of [options, frozen]) {
    expect(await made.try(() => Promise.reject(permanent(new Error('no'))), each)).toMatchObject({
      value: 1,
    });
    expect(await made.run(() => 2, each)).toBe(2);
  }
  expect(options).toEqual(before);
});
