import { Writable } from 'node:stream';
import { type Notice, subscribe } from 'holdfast';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type LogOptions, logRetries, type RetryLine } from '../src/index.ts';
import { down, ended, setup } from './storm.ts';

type Line = RetryLine & { level: number; msg: string };

/** Logs one policy through pino itself. */
function logging(spec: Parameters<typeof setup>[0] = {}, options: LogOptions<'info' | 'warn'> = {}) {
  const made = setup(spec);
  const lines: Line[] = [];
  const sink = new Writable({
    write(chunk, _, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const logger = pino({ base: null, timestamp: false }, sink);
  const stop = logRetries(logger, { policies: [made.policy], clock: made.clock, ...options });
  onTestFinished(stop);
  return { ...made, lines, stop };
}

describe('a line', () => {
  test('tells of a retry, of giving up and of a breaker', async () => {
    const { policy, call, clock, lines, name } = logging({ attempts: 2, breaker: { consecutive: 2 } });
    await ended(clock, policy.try(call(down), { target: 'eu' }));
    const from = { level: 30, policy: name, target: 'eu' };
    const failed = { attempt: 1, reason: 'transient', error_type: 'ECONNRESET' };
    expect(lines).toEqual([
      { ...from, ...failed, event: 'retry', next_delay_ms: 100, msg: 'will retry' },
      {
        ...from,
        event: 'breaker',
        from: 'closed',
        to: 'open',
        reason: 'consecutive_failures',
        msg: 'breaker changed',
      },
      {
        ...from,
        event: 'gave_up',
        attempt: 2,
        reason: expect.any(String),
        error_type: 'ECONNRESET',
        msg: 'gave up',
      },
    ]);
  });

  test('says of a policy that only observes what it would have done', async () => {
    const { policy, call, clock, lines } = logging({ mode: 'observe', attempts: 2 });
    await ended(clock, policy.try(call(down)));
    expect(lines).toMatchObject([
      { event: 'gave_up', reason: 'observed', attempt: 1, msg: 'gave up' },
      { event: 'retry', observed: true, msg: 'would retry' },
      { event: 'gave_up', observed: true, reason: 'attempts_exhausted', msg: 'would give up' },
    ]);
    expect(lines[0]).not.toHaveProperty('observed');
  });

  test('has no message of an error unless asked', async () => {
    const quiet = logging({ attempts: 1 });
    await quiet.policy.try(quiet.call(down));
    expect(JSON.stringify(quiet.lines)).not.toContain('hunter2');
    const frank = logging({ attempts: 1 }, { messages: true, level: 'warn' });
    await frank.policy.try(frank.call(down));
    expect(frank.lines).toMatchObject([{ level: 40, error_message: 'secret: hunter2' }]);
  });

  test('is not written for work that simply succeeds', async () => {
    const { policy, call, lines } = logging();
    await policy.run(call('fine'));
    expect(lines).toEqual([]);
  });
});

describe('a storm', () => {
  test('writes so many lines a window, and says with the next one how many were left out', async () => {
    const { policy, call, clock, lines, stop } = logging({ attempts: 1 }, { linesMax: 3, window: '10s' });
    for (let n = 0; n < 100; n++) await policy.try(call(down));
    expect(lines).toHaveLength(3);
    await clock.advance('10s');
    await policy.try(call(down));
    expect(lines).toHaveLength(4);
    expect(lines[3]).toMatchObject({ event: 'gave_up', left_out: 97 });
    await policy.try(call(down));
    expect(lines[4]).not.toHaveProperty('left_out');
    stop();
    expect(lines).toHaveLength(5);
  });

  test('that is over has its count told by whatever line comes after it', async () => {
    const { policy, call, clock, lines, name } = logging({ attempts: 1 }, { linesMax: 1, window: '10s' });
    for (let n = 0; n < 5; n++) await policy.try(call(down));
    await clock.advance('1m');
    await policy.try(call(Object.assign(new Error(), { status: 404 })));
    expect(lines.slice(1)).toMatchObject([
      { event: 'left_out', policy: name, reason: 'attempts_exhausted', left_out: 4 },
      { event: 'gave_up', reason: 'not_retryable' },
    ]);
  });

  test('is told in full when logging ends, and never twice', async () => {
    const { policy, call, lines, stop } = logging({ attempts: 1 }, { linesMax: 1 });
    for (let n = 0; n < 5; n++) await policy.try(call(down));
    stop();
    stop();
    await policy.try(call(down));
    expect(lines.slice(1)).toMatchObject([{ event: 'left_out', left_out: 4 }]);
  });

  test('of one reason does not silence another, nor another policy', async () => {
    const one = logging({ attempts: 1 }, { linesMax: 1, policies: 'all' });
    const other = setup({ attempts: 1 });
    for (let n = 0; n < 5; n++) await one.policy.try(one.call(down));
    await one.policy.try(one.call(Object.assign(new Error(), { status: 404 })));
    await other.policy.try(other.call(down));
    expect(one.lines.map(({ policy, reason }) => [policy, reason])).toEqual([
      [one.name, 'attempts_exhausted'],
      [one.name, 'not_retryable'],
      [other.name, 'attempts_exhausted'],
    ]);
  });

  test('of thousands of policies is kept in bounded memory, and still told', async () => {
    const { clock, lines, stop } = logging({}, { linesMax: 1, policies: 'all' });
    const heard: Notice[] = [];
    onTestFinished(subscribe((notice) => heard.push(notice)));
    for (let n = 0; n < 1200; n++) {
      const { policy, call } = setup({ attempts: 1 });
      await policy.try(call(down));
    }
    expect(lines).toHaveLength(1001);
    stop();
    expect(lines.at(-1)).toMatchObject({ event: 'left_out', reason: 'other', left_out: 199 });
    expect(clock.pendingTimers).toBe(0);
  });
});

test.each([
  ['logger: expected a logger such as console, got undefined', undefined, {}],
  ['logRetries: expected options such as { level: \'warn\' }, got "debug"', console, 'debug'],
])('%s', (said, logger, options) => {
  expect(() => logRetries(logger as never, options as never)).toThrow(said);
});

test.each([
  ['level', { level: 'shout' as never }],
  ['linesMax', { linesMax: 0 }],
  ['window', { window: 'soon' as never }],
  ['policy', { policy: 'payment' } as never],
])('says what is wrong with %s', (path, options) => {
  expect(() => logRetries({ info() {} }, options)).toThrow(
    expect.objectContaining({ code: 'HOLDFAST_OPTIONS', path }),
  );
});
