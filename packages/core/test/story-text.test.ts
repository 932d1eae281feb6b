import { describe, expect, test } from 'vitest';
import { stopSentences, tellStory } from '../src/explain.ts';
import {
  type PolicySpec,
  policy,
  type RefusedError,
  type Story,
  stopReasons,
  storyOf,
  transient,
} from '../src/index.ts';
import { after, scripted, seededRandom, virtualClock } from '../src/testing.ts';

const down = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

describe('a story in words', () => {
  async function tell(spec: PolicySpec, ...beats: unknown[]) {
    const clock = virtualClock();
    const made = policy(
      { attemptTimeout: 'none', backoff: { base: '100ms', jitter: 'none' }, ...spec },
      { clock, random: seededRandom('story') },
    );
    const running = made.try(scripted(clock, ...beats));
    await clock.runAll();
    return tellStory((await running).story).split('\n');
  }

  test('says after each attempt why it was tried again, and at last why not', async () => {
    const busy = Object.assign(new Error('too many'), { status: 429 });
    expect(
      await tell({ name: 'orders', attempts: 3 }, after('120ms', down), busy, after('10ms', down)),
    ).toEqual([
      'orders failed with 3 attempts in 2.23 s',
      '  attempt 1 failed 120 ms in: read ECONNRESET (transient); tried again 100 ms later',
      '  attempt 2 failed 220 ms in: Error: too many (status 429) (throttled); tried again 2 s later',
      '  attempt 3 failed 2.23 s in: read ECONNRESET (transient); not tried again',
      '  stopped: attempts_exhausted — all attempts were used up',
    ]);
  });

  test('says that it succeeded in the end', async () => {
    expect(await tell({ backoff: false }, down, 'ok')).toEqual([
      'the work succeeded with 2 attempts in 0 ms',
      '  attempt 1 failed 0 ms in: read ECONNRESET (transient); tried again at once',
      '  attempt 2 succeeded',
    ]);
  });

  test('says that a wait would have been too long', async () => {
    const lines = await tell({ patience: '50ms' }, down);
    expect(lines.at(-1)).toBe(
      '  stopped: patience_too_short — the wait for the next attempt would have been 100 ms, and 50 ms were left',
    );
    expect((await tell({ patience: '50ms', backoff: () => Infinity }, down)).at(-1)).toBe(
      '  stopped: patience_too_short — patience has ended, or would have ended before the next attempt',
    );
  });

  test('says for how long the server asked to wait, if that was too long', async () => {
    const later = Object.assign(new Error('later'), { status: 503, headers: { 'retry-after': '30' } });
    expect((await tell({ patience: '3s' }, after('100ms', later))).at(-1)).toBe(
      '  stopped: patience_too_short — the server asked for a wait of 30 s, and 2.9 s were left',
    );
  });

  test('names the option that limits retries', () => {
    expect(tellStory(storyWith({}, 'budget_exhausted'))).toContain('the option `budget` of the policy');
  });

  test.each([
    ['at once', undefined],
    ['in the machine', { patience: '1m' } as const],
  ])('says when an open breaker lets calls through again, if it refuses %s', async (_where, options) => {
    const clock = virtualClock();
    const made = policy(
      { attempts: 1, breaker: { consecutive: 1, openFor: '10s' } },
      { clock, random: seededRandom('story') },
    );
    await made.try(() => Promise.reject(down));
    const ending = await made.try(() => 1, options);
    const { retryAfterMs } = (ending as { error?: RefusedError }).error!;
    expect(Number.isInteger(retryAfterMs)).toBe(true);
    expect(ending.story.retryAfterMs).toBe(retryAfterMs);
    expect(tellStory(ending.story)).toMatch(
      /stopped: breaker_open — the breaker is open, .*; calls are tried again in \d+(\.\d+)? s$/,
    );
  });

  test('says what a classifier threw', async () => {
    const retryOn = () => {
      throw new TypeError('no such property');
    };
    expect((await tell({ retryOn }, down)).at(-1)).toMatch(
      /^ {2}stopped: not_retryable — a classifier threw no such property, so the failure is not tried again: .* returns `transient`/,
    );
  });

  test.each<[answer: unknown, told: string]>([
    [true, 'true'],
    ['transiet', '"transiet"'],
    [{ class: 'transiet' }, '{"class":"transiet"}'],
    ['ok', '"ok"'],
  ])('says that a classifier returned %j', async (answer, told) => {
    expect((await tell({ retryOn: () => answer as never }, down)).at(-1)).toContain(
      `stopped: not_retryable — a classifier returned ${told}, so the failure is not tried again`,
    );
  });

  test('does not blame the caller for an onWait that throws', async () => {
    const made = policy({}, { clock: virtualClock() });
    const onWait = () => {
      throw new Error('my mistake');
    };
    const { story } = await made.try(() => Promise.reject(down), { onWait });
    expect(tellStory(story).split('\n').at(-1)).toBe(
      '  stopped: cancelled — onWait threw my mistake, and that ends the run',
    );
  });

  test('says that a run was cancelled during a wait', async () => {
    const clock = virtualClock();
    const caller = new AbortController();
    const made = policy({ backoff: { base: '1s', jitter: 'none' } }, { clock });
    const running = made.try(scripted(clock, down), { signal: caller.signal });
    await clock.advance('10ms');
    caller.abort();
    expect(
      tellStory((await running).story)
        .split('\n')
        .slice(1),
    ).toEqual([
      '  attempt 1 failed 0 ms in: read ECONNRESET (transient); to be tried again 1 s later',
      '  stopped: cancelled — the caller cancelled it',
    ]);
  });

  test('says the code of the cause, and whole milliseconds', async () => {
    const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    const lines = await tell({ attempts: 2, backoff: { base: 12.3, jitter: 'none' } }, () => {
      throw new TypeError('fetch failed', { cause: reset });
    });
    expect(lines[1]).toContain('TypeError: fetch failed (ECONNRESET)');
    expect(lines[1]).toContain('tried again 12 ms later');
  });

  test('does not say a code twice', async () => {
    const cause = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    const lines = await tell({ attempts: 1 }, new Error('request failed: ECONNRESET', { cause }));
    expect(lines[1]).toContain('Error: request failed: ECONNRESET (');
    expect(lines[1]).not.toContain('(ECONNRESET)');
  });

  test('does not give a timeout the code of an earlier attempt', async () => {
    const lines = await tell({ attempts: 2, attemptTimeout: '1s' }, down, 'hang');
    expect(lines.find((line) => line.includes('attempt 2'))).not.toContain('ECONNRESET');
  });

  test('helps with a status that is only in the text', async () => {
    const lines = await tell({}, new Error('status 503'));
    expect(lines.at(-1)).toContain('stopped: not_retryable — 503 in the text of an error is not read');
    expect(lines.at(-1)).toContain('Object.assign(error, { status: 503 })');
    expect((await tell({}, new Error('no luck'))).at(-1)).toContain('no pack knows this error');
  });

  test('says that nothing was called', async () => {
    const made = policy({ limiter: { rate: '1/h', burst: 1 }, name: 'narrow' });
    await made.run(() => 1);
    expect(tellStory((await made.try(() => 1)).story)).toMatch(
      /^narrow failed without an attempt in .*\n {2}stopped: rate_limited — /,
    );
    const known = policy({ cache: true });
    await known.run(() => 1, { cacheKey: 'a' });
    const { story } = await known.try(() => 1, { cacheKey: 'a' });
    expect(tellStory(story)).toContain('nothing was called: the result was known');
  });

  test('that does not exist is said to be none', () => {
    expect(tellStory(storyOf(new Error('of nobody')))).toBe(
      'There is no story: the call succeeded, no policy ran it, or it threw a primitive value such as a text, which cannot carry a story (throw an Error).',
    );
  });

  test('indents the story of a run inside', async () => {
    const clock = virtualClock();
    const inner = policy({ name: 'stock', attempts: 1 }, { clock });
    const outer = policy({ name: 'order' }, { clock });
    const running = outer.try(() => inner.run(scripted(clock, down)), { target: 'a' });
    await clock.runAll();
    expect(tellStory((await running).story).split('\n')).toEqual([
      'order failed with 1 attempt in 0 ms',
      '  attempt 1 at a failed 0 ms in: read ECONNRESET (transient); not tried again',
      '  inside that attempt:',
      '    stock failed with 1 attempt in 0 ms',
      '      attempt 1 failed 0 ms in: read ECONNRESET (transient); not tried again',
      '      stopped: attempts_exhausted — all attempts were used up',
      '  stopped: not_owner — another layer is responsible for retries of this work',
    ]);
  });

  test('tells of a race', () => {
    expect(tellStory(storyWith({ verdict: { kind: 'race' } }))).toContain(
      'another attempt was still in flight',
    );
  });

  test.each(stopReasons)('has a sentence for %s', (stop) => {
    expect(stopSentences[stop].length).toBeGreaterThan(10);
    expect(tellStory(storyWith({}, stop))).toContain(`stopped: ${stop} — ${stopSentences[stop]}`);
  });

  test.each<[outcome: unknown, words: string]>([
    [down, 'read ECONNRESET'],
    [Object.assign(new Error('slow'), { code: 'ETIMEDOUT' }), 'ETIMEDOUT: slow'],
    [new TypeError('no'), 'TypeError: no'],
    [new Error(''), 'Error'],
    [transient('busy'), 'Error: busy'],
    [{ status: 503, headers: {} }, 'status 503'],
    [{ items: [] }, 'a value that was judged a failure'],
    ['text', 'text'],
    [null, 'null'],
    [new Error('two\nlines'), 'Error: two lines'],
    [new Error('x'.repeat(500)), `Error: ${'x'.repeat(92)}…`],
    [
      Object.defineProperty({}, 'code', {
        get() {
          throw new Error('hostile');
        },
      }),
      'something that cannot be read',
    ],
  ] as [unknown, string][])('tells what an attempt gave in one line: %#', (outcome, words) => {
    expect(tellStory(storyWith({ outcome }))).toContain(`: ${words} (transient)`);
  });
});

function storyWith(told: Partial<Story['log'][number]>, stop?: Story['stop']): Story {
  const attempt = {
    attempt: 1,
    target: undefined,
    endedAtMs: 5,
    class: 'transient',
    outcome: down,
    verdict: { kind: 'give_up', because: 'attempts_exhausted' },
    ...told,
  } as const;
  return { policy: undefined, attempts: 1, tookMs: 5, stop, log: [attempt], inner: undefined };
}
