import { expect, expectTypeOf, test } from 'vitest';
import { after, heeding, scripted, virtualClock } from '../src/testing.ts';

const down = new Error('down');

test('plays one beat a call, and the last one for ever', async () => {
  const operation = scripted(virtualClock(), down, 1, () => 2, 'three');
  await expect(operation()).rejects.toBe(down);
  const rest = [await operation(), await operation(), await operation(), await operation()];
  expect(rest).toEqual([1, 2, 'three', 'three']);
  expectTypeOf(operation).returns.resolves.toExtend<number | 'three'>();
});

test('remembers when it was called, as which attempt, and who has left since', async () => {
  const clock = virtualClock();
  const operation = scripted(clock, 'hang');
  const caller = new AbortController();
  void operation({ attempt: 1, signal: caller.signal });
  await clock.advance('2s');
  void operation({ attempt: 2, signal: new AbortController().signal });
  void operation();
  caller.abort();
  expect(operation.calls).toMatchObject([
    { at: 0, attempt: 1, aborted: true },
    { at: 2_000, attempt: 2, aborted: false },
    { at: 2_000, attempt: 3, aborted: false },
  ]);
  expect(operation.attempts).toEqual([1, 2, 3]);
});

test('reads no signal that the caller has not read', async () => {
  const operation = scripted(virtualClock(), 1);
  let read = 0;
  const context = {
    get signal() {
      read++;
      return AbortSignal.abort();
    },
  };
  await operation(context);
  expect(read).toBe(0);
  expect(operation.calls[0]?.aborted).toBe(true);
});

test('answers after a time, even when nobody waits any more', async () => {
  const clock = virtualClock();
  const caller = new AbortController();
  const late = scripted(clock, after('5s', 'late'))({ signal: caller.signal });
  caller.abort();
  expect(clock.pendingTimers).toBe(1);
  await clock.advance('5s');
  expect(await late).toBe('late');
});

test('fails after a time', async () => {
  const clock = virtualClock();
  const failing = expect(scripted(clock, after(10, down))()).rejects.toBe(down);
  await clock.advance(10);
  await failing;
});

test.each([
  ['a hang', heeding('hang')],
  ['a delay', heeding(after('1h', 1))],
  ['a hang after a delay', after(5, heeding('hang'))],
])('%s that heeds its signal ends with it and leaves nothing behind', async (_, beat) => {
  const clock = virtualClock();
  const caller = new AbortController();
  const running = scripted(clock, beat)({ signal: caller.signal });
  const gone = expect(running).rejects.toThrow('left');
  await clock.advance(10);
  caller.abort(new Error('left'));
  await gone;
  expect(clock.pendingTimers).toBe(0);
  await expect(scripted(clock, heeding('hang'))({ signal: caller.signal })).rejects.toThrow('left');
});

test('a heeding delay that is not aborted answers', async () => {
  const clock = virtualClock();
  const answer = scripted(clock, heeding(after(10, 1)))({ signal: new AbortController().signal });
  await clock.advance(10);
  expect(await answer).toBe(1);
});
