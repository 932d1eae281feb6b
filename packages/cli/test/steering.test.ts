import { existsSync } from 'node:fs';
import { type ProcessReport, timeOrderedId } from '@holdfast/contracts';
import { joinFleet } from '@holdfast/events';
import type { SqliteEngine } from '@holdfast/sqlite';
import { policy, systemClock, systemRandom } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { widthOf } from '../src/text-width.ts';
import { parkedStore } from './parked-store.ts';
import { ask, inTerminal, script } from './run-holdfast.ts';

const newId = timeOrderedId(systemClock, systemRandom);

/** A process that reports itself and then hears of nothing any more. */
function deafProcess(pid: number): ProcessReport {
  return {
    ...{
      id: newId(),
      service: 'checkout',
      host: 'web-2',
      pid,
      version: '1.0',
      startedAt: 0,
      clockOffsetMs: 0,
    },
    ...{ controlsVersion: 0, notObeyed: [], policies: [], consumers: [], leftOut: 0 },
  };
}

async function fleetOf(engine: SqliteEngine, name: string) {
  const payment = policy({ name, attempts: 3, breaker: true });
  await payment.run(async () => 'paid', { target: 'bank' });
  const member = joinFleet({ engine, service: 'checkout', every: '50ms' });
  await member.refresh();
  onTestFinished(() => member.stop());
  return { payment, member };
}

test('a policy that only observes is shown as one, with what it would have done', async () => {
  const { file, engine } = await parkedStore(0);
  const watching = policy({ name: 'watching', mode: 'observe', retryOn: 'any', attempts: 2, backoff: false });
  await watching.try(() => Promise.reject(new Error('down')));
  const { member } = await fleetOf(engine, 'beside-watching');
  await member.refresh();
  const shown = await ask(['policies', 'show', 'watching', '--store', file]);
  expect(shown.out).toContain(
    '1 calls, 0 succeeded, 0 of them after a retry; stopped: 1 observed; only observes',
  );
  expect(shown.out).toContain('would have done: 1 retry, 1 attempts_exhausted');
  const listed = await ask(['policies', 'ls', '--store', file]);
  expect(listed.out).toContain('watching only observes: it retries and refuses nothing');
});

test('a call that succeeded after a retry is one of those that succeeded', async () => {
  const { file, engine } = await parkedStore(0);
  const bumpy = policy({ name: 'bumpy', retryOn: 'any', attempts: 2, backoff: false });
  const run = (failures: number) =>
    bumpy.try(({ attempt }) => (attempt > failures ? 'ok' : Promise.reject(new Error('down'))));
  for (const failures of [0, 0, 1, 2]) await run(failures);
  await fleetOf(engine, 'beside-bumpy');
  const shown = await ask(['policies', 'show', 'bumpy', '--store', file]);
  expect(shown.out).toContain('4 calls, 3 succeeded, 1 of them after a retry; stopped: 1 attempts_exhausted');
  const listed = await ask(['policies', 'ls', '--store', file]);
  expect(listed.out).toMatch(/^bumpy +1 +4 +75\.0 % +25\.0 % +1\.50× /m);
});

describe('holdfast topics', () => {
  test('shows one topic with its consumers, controls and groups', async () => {
    const { file, engine } = await parkedStore(2);
    await fleetOf(engine, 'topics-show');
    await ask(['topics', 'concurrency', 'orders', '2', '--why', 'slow', '--store', file]);
    const { code, out } = await ask(['topics', 'show', 'orders', '--store', file]);
    expect(code).toBe(0);
    expect(out).toMatch(/^parked {6}2$/m);
    expect(out).toMatch(
      /^control +limited to 2 handlers at once in each consumer by ann at \S+, without an end: slow$/m,
    );
    expect(out).toMatch(/^orders +checkout@\S+ \(\d+\) +\w+ +0 of \d+ +0$/m);
    expect(out).toMatch(/^[0-9a-f]{16} +2 +\S+ +TypeError: total is not a number$/m);
    const [json] = (await ask(['topics', 'show', 'orders', '--json', '--store', file])).json();
    expect(json).toMatchObject({
      topic: 'orders',
      parked: 2,
      consumers: [{ name: 'orders' }],
      groups: [{ count: 2 }],
    });
  });

  test('shows what waits and when it is due, and makes it due now', async () => {
    const { file, engine, orders } = await parkedStore(0);
    await orders.stop();
    await engine.broker.publish('orders', [
      { id: 'now', payload: '1', key: 'a' },
      { id: 'soon', payload: '2', key: 'b', tenant: 'acme', delayMs: 30_000 },
      { id: 'late', payload: '3', delayMs: 7_200_000 },
    ]);
    const waiting = (...flags: string[]) =>
      ask(['topics', 'waiting', 'orders', '--json', '--store', file, ...flags]);
    expect((await waiting()).json().map(({ id, state }) => [id, state])).toEqual([
      ['now', 'ready'],
      ['soon', 'delayed'],
      ['late', 'delayed'],
    ]);
    expect((await waiting('--state', 'delayed', '--tenant', 'acme')).json()).toMatchObject([{ id: 'soon' }]);
    expect((await waiting('--due', '--limit', '1')).err).toMatch(/there are more, with --cursor [\w.-]+\n/);
    expect(await waiting('--state', 'lost')).toMatchObject({
      code: 2,
      err: expect.stringContaining('got "lost"'),
    });
    const due = await ask(['topics', 'due', 'orders', '--json', '--store', file]);
    expect(due.json().filter(({ count }) => count > 0)).toEqual([
      { fromMs: null, toMs: 0, count: 1 },
      { fromMs: 10_000, toMs: 60_000, count: 1 },
      { fromMs: 3_600_000, toMs: 86_400_000, count: 1 },
    ]);
    expect((await ask(['topics', 'due', 'orders', '--store', file])).out).toMatch(/^10s to 1m +1 +█+$/m);
    const list = await ask(['topics', 'waiting', 'orders', '--store', file]);
    expect(list.out).toMatch(/^soon +b +acme +delayed +0 +\d{4}-\S+$/m);

    const retried = await ask(['topics', 'retry', 'orders', 'soon', 'now', '--store', file]);
    expect([retried.code, retried.out]).toEqual([1, 'soon is due now.\nnow was not delayed.\n']);
    expect((await ask(['topics', 'retry', 'orders', '--all', '--store', file])).out).toBe(
      '1 events are due now.\n',
    );
    expect((await engine.broker.counts('orders')).ready).toBe(3);
    expect((await ask(['audit', '--what', 'retry_now', '--json', '--store', file])).json()).toHaveLength(2);
  });

  test('takes the shortened id of a parked event', async () => {
    const { file, engine } = await parkedStore(0);
    const id = newId();
    await engine.broker.publish('orders', [{ id, payload: '1' }]);
    await expect.poll(() => engine.triage.count({}), { timeout: 10_000 }).toBe(1);
    const end = `…${id.slice(-8)}`;
    await ask(['topics', 'skip', 'orders', end, '--why', 'it crashes', '--store', file]);
    expect((await engine.controls.active()).controls.map((each) => each.id)).toEqual([`skip:orders:${id}`]);
  });

  test('unblocks a key whose first event is parked', async () => {
    const { file, engine } = await parkedStore(0);
    await engine.broker.declare('carts', { ordering: 'key' });
    await engine.broker.publish('carts', [
      { id: 'cart-first', payload: '1', key: 'a' },
      { id: 'cart-second', payload: '2', key: 'a' },
    ]);
    const { deliveries } = await engine.broker.lease('carts', { owner: 'test', limit: 1, leaseMs: 60_000 });
    const [{ lease }] = deliveries as [(typeof deliveries)[number]];
    await engine.broker.settle([{ lease, kind: 'park', stop: 'poison', story: [], holdsKey: true }]);
    const waiting = await ask(['topics', 'waiting', 'carts', '--json', '--store', file]);
    expect(waiting.json().map(({ id, state }) => [id, state])).toEqual([
      ['cart-first', 'blocking'],
      ['cart-second', 'behind'],
    ]);
    const unblock = ['topics', 'unblock', 'carts', '--store', file, '--why', 'the order does not matter'];
    const done = await ask([...unblock, 'cart-fir']);
    expect([done.code, done.out]).toEqual([0, 'cart-first is no longer in the way.\n']);
    expect((await engine.broker.counts('carts')).ready).toBe(1);
    expect((await ask([...unblock, 'cart-first'])).code).toBe(1);
    expect((await ask(['topics', 'unblock', 'carts', 'cart-first', '--store', file])).code).toBe(2);
  });

  test('controls with who, why and an end, which can be removed', async () => {
    const { file, engine } = await parkedStore(0);
    await engine.broker.declare('slow');
    const steer = (...args: string[]) => ask(['topics', ...args, '--store', file]);
    const ids = async () => (await engine.controls.active()).controls.map(({ id }) => id).sort();
    expect((await steer('quarantine', 'orders', '--tenant', 'acme')).err).toContain('--why is needed');
    expect(
      (await steer('quarantine', 'orders', '--tenant', 'acme', '--for', '1h', '--why', 'bad data')).out,
    ).toMatch(/^orders: tenant acme quarantined, until \S+\.\nUndo it with /);
    expect((await steer('quarantine', 'orders', '--why', 'x')).err).toBe(
      'holdfast: say --tenant or --key.\n',
    );
    expect(
      (await steer('reroute', 'orders', '--to', 'slow', '--type', 'refund', '--why', 'minutes')).code,
    ).toBe(0);
    expect((await steer('reroute', 'orders', '--to', 'slwo', '--why', 'x')).err).toContain(
      'did you mean "slow"?',
    );
    expect((await steer('concurrency', 'orders', '2', '--why', 'slow')).code).toBe(0);
    expect((await steer('concurrency', 'orders', '0', '--why', 'slow')).code).toBe(2);
    expect((await steer('skip', 'orders', 'order-1', '--why', 'it crashes')).code).toBe(0);
    expect((await steer('pause', 'orders', '--only-retries', '--why', 'a rest')).code).toBe(0);
    expect(await ids()).toEqual([
      'concurrency:orders',
      'pause:orders:retries',
      'quarantine:orders:tenant:acme',
      'reroute:orders:refund',
      'skip:orders:order-1',
    ]);
    const listed = await ask(['topics', 'ls', '--store', file]);
    expect(listed.out).toMatch(/^ {2}retries paused by ann at \S+, until \S+: a rest$/m);

    expect((await steer('release', 'orders', '--tenant', 'acme')).code).toBe(0);
    expect((await steer('release', 'orders', '--tenant', 'acme')).code).toBe(1);
    expect((await steer('reroute', 'orders', '--type', 'refund', '--stop', '--why', 'ok')).code).toBe(0);
    expect((await steer('concurrency', 'orders', 'off', '--why', 'fast')).code).toBe(0);
    expect((await steer('skip', 'orders', 'order-1', '--undo', '--why', 'fixed')).code).toBe(0);
    expect((await steer('resume', 'orders')).out).toBe('orders goes on.\n');
    expect(await ids()).toEqual([]);
    const [last] = (
      await ask(['audit', '--of', 'topic:orders', '--limit', '1', '--json', '--store', file])
    ).json();
    expect(last).toMatchObject({
      what: 'control_removed',
      subjects: expect.arrayContaining(['topic:orders']),
    });
  });
});

describe('holdfast policies', () => {
  test('forces breakers in every process, and says who obeys', async () => {
    const { file, engine } = await parkedStore(0);
    const { payment } = await fleetOf(engine, 'policies-force');
    const force = (...args: string[]) =>
      ask(['policies', 'force', 'policies-force', ...args, '--store', file]);
    expect((await force('open')).err).toContain('--why is needed');
    const forced = await force('open', '--target', 'bank', '--for', '5m', '--why', 'they asked for it');
    expect(forced.out).toMatch(/^policies-force: breaker of bank forced open, until \S+\.\n/);
    expect(forced.out).toMatch(/^checkout@\S+ \(\d+\) +obeyed$/m);
    expect(forced.code).toBe(0);
    await expect(payment.run(async () => 'paid', { target: 'bank' })).rejects.toThrow();

    const shown = await ask(['policies', 'show', 'policies-force', '--store', file]);
    expect(shown.out).toMatch(/^bank +open \(forced\) /m);
    expect(shown.out).toMatch(/breaker of bank forced open by ann at \S+, until \S+: they asked for it/);
    const listed = await ask(['policies', 'ls', '--store', file]);
    expect(listed.out).toMatch(/^policies-force +1 +\d+ +[\d.]+ % +[\d.]+ % +[\d.]+× +1 open/m);
    expect((await force('auto', '--target', 'bank', '--why', 'they are back')).code).toBe(0);
    await expect
      .poll(() => payment.run(async () => 'paid', { target: 'bank' }).catch(() => 'refused'), {
        timeout: 10_000,
      })
      .toBe('paid');
  });

  test('says which process has not heard of it', async () => {
    const { file, engine } = await parkedStore(0);
    await fleetOf(engine, 'policies-deaf');
    await engine.presence.report(deafProcess(4711));
    const flags = ['--why', 'a test', '--no-wait', '--store', file];
    const { code, out } = await ask(['policies', 'retries', 'policies-deaf', 'off', ...flags]);
    expect(code).toBe(1);
    expect(out).toMatch(/^policies-deaf: retries switched off, without an end\.$/m);
    expect(out).toMatch(/^checkout@web-2 \(4711\) +not heard of$/m);
    const on = await ask(['policies', 'retries', 'policies-deaf', 'on', ...flags]);
    expect([on.code, on.out.split('\n')[0]]).toEqual([0, 'control retries:policies-deaf is removed.']);
  });

  test('does not believe a name that nobody has', async () => {
    const { file, engine } = await parkedStore(0);
    await fleetOf(engine, 'policies-name');
    const mode = (...args: string[]) =>
      ask(['policies', 'mode', ...args, '--why', 'a test', '--store', file]);
    expect(await mode('policies-nmae', 'observe')).toMatchObject({
      code: 2,
      err: 'holdfast: no process here has a policy "policies-nmae"; did you mean "policies-name"?\n',
    });
    expect(await mode('policies-name', 'watch')).toMatchObject({
      code: 2,
      err: 'holdfast: expected one of observe, enforce, auto, got "watch".\n',
    });
    const unseen = await mode('policies-nmae', 'observe', '--unseen', '--for', '1m');
    expect(unseen.out).toMatch(/not obeyed: it has nothing that could obey/);
    expect((await ask(['policies', 'show', 'nothing', '--store', file])).code).toBe(2);
  });
});

describe('holdfast status', () => {
  test('names parked events at any age, with a command that can be pasted', async () => {
    const { file } = await parkedStore(1);
    const { code, out } = await ask(['status', '--store', file]);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^Nothing is urgent\.\n\n {2}1 event waits in the parking lot, none new for \d+m?s\.\n {4}holdfast dlq groups --store \S+\n/,
    );
    const byEnv = await ask(['status'], { HOLDFAST_STORE: file });
    expect(byEnv.out).toContain('    holdfast dlq groups\n');
    expect(out).toContain(
      'checked: events that are due are taken, or paused on purpose; assemblies that are due are run, or paused on purpose; no group of parked events grows;',
    );
    expect(out).toMatch(/1 topic: 0 ready, 0 delayed, 0 in hand, 1 parked;/);
  });

  test('says what needs a person, with a command, and exits with 1', async () => {
    const { file, engine } = await parkedStore(12);
    await ask(['dlq', 'replay', '--all', '--canary', '1', '--canary-for', '1ms', '--store', file]);
    await engine.controls.impose(
      { kind: 'breaker', policy: 'payment', state: 'open' },
      { who: 'ann', why: 'a test' },
    );
    await engine.presence.report({
      ...deafProcess(1),
      controlsVersion: 1000,
      policies: [
        {
          ...{ name: 'payment', counters: { operations: 1, attempts: 1, stops: {} }, killSwitch: false },
          targets: [{ target: 'bank', inFlight: 0, breaker: 'open', breakerForMs: 60_000 }],
        },
      ],
    });
    const { code, out } = await ask(['status', '--store', file]);
    expect(code).toBe(1);
    expect(out).toMatch(/^4 things need you\.\n/);
    expect(out).toMatch(/12 events parked with TypeError: total is not a number, 12 of them in the last 5m/);
    expect(out).toMatch(/the breaker of "bank" \(policy "payment"\) is open for 1m in checkout@web-2 \(1\)/);
    expect(out).toMatch(
      /replay \S+ stopped itself \d+m?s ago: the canary failed again; 1 of 1 failed again\./,
    );
    expect(out).toMatch(/control breaker:payment has no end: all breakers forced open by ann/);
    expect(out).toContain(`    holdfast policies show payment --store ${file}\n`);
    const [json] = (await ask(['status', '--json', '--store', file])).json();
    expect(json.needs.map(({ kind }: { kind: string }) => kind)).toEqual([
      'growing',
      'breakers',
      'replays',
      'controls',
    ]);
    expect(json.figures).toMatchObject({ parked: 12, breakersOpen: 1, processes: 1 });
  });

  test('shows a pause, which needs a reason and ends by itself unless told otherwise', async () => {
    const { file, engine } = await parkedStore(0);
    const pause = (...flags: string[]) => ask(['topics', 'pause', 'orders', '--store', file, ...flags]);
    expect((await pause()).err).toBe('holdfast: --why is needed: it is kept in the audit log.\n');
    expect((await pause('--why', 'a deploy')).code).toBe(0);
    const [active] = (await engine.controls.active()).controls;
    expect(Math.round((active!.until! - active!.since) / 6e4)).toBe(60);
    const { out } = await ask(['status', '--store', file]);
    expect(out).toMatch(
      /^Nothing needs you\.\n\n {2}topic "orders": paused by ann \d+m?s ago, for \S+ more, until \S+Z: a deploy\.\n {4}holdfast topics resume orders --store /,
    );
    expect((await pause('--why', 'a deploy', '--for', 'forever')).out).toContain('paused, without an end.');
  });

  test('a replay that a person has stopped needs nobody', async () => {
    const { file, orders } = await parkedStore(2);
    await orders.stop();
    const [{ id }] = (await ask(['dlq', 'replay', '--all', '--detach', '--json', '--store', file])).json();
    await ask(['dlq', 'replay', '--cancel', id, '--why', 'enough', '--store', file]);
    await ask(['dlq', 'replay', '--resume', id, '--store', file]);
    expect((await ask(['status', '--store', file])).code).toBe(0);
  });

  test.skipIf(!existsSync(script))('fits into a terminal, and watches in it', async () => {
    const { file } = await parkedStore(12);
    const { code, lines } = await inTerminal(['status', '--store', file]);
    expect(code).toBe(1);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    const watched = await inTerminal(
      ['status', '--watch', '--every', '100ms', '--store', file],
      {},
      80,
      (screen) => screen.split('\x1b[2J').length > 3,
    );
    expect(watched.screen).toContain('1 thing needs you.');
    expect(watched.code).toBe(130);
  });
});

describe('holdfast tail', () => {
  /** Parks events, sets controls and reports processes until the command has seen enough of it. */
  async function whileRunning<T>(running: Promise<T>, engine: SqliteEngine, hasOwnIds = true): Promise<T> {
    let isOver = false;
    const ended = running.finally(() => {
      isOver = true;
    });
    for (let index = 0; !isOver; index += 1) {
      const id = hasOwnIds ? `late-${index}` : newId();
      await engine.broker.publish('orders', [{ id, payload: '1' }]);
      await engine.controls.impose(
        { kind: 'concurrency', topic: 'orders', concurrencyMax: 9 },
        { who: 'bob', why: 'a test' },
      );
      await engine.controls.impose(
        { kind: 'concurrency', topic: 'other', concurrencyMax: 9 },
        { who: 'bob', why: 'not this' },
      );
      await engine.presence.report(deafProcess(7));
      await new Promise((resolve) => setImmediate(resolve));
    }
    return ended;
  }

  test('prints what is new: parked events, acts, processes', async () => {
    const { file, engine } = await parkedStore(1);
    const isEnough = (out: string) =>
      ['parked', 'act', 'process'].every((type) => out.includes(`"type":"${type}"`));
    const args = ['tail', '--every', '20ms', '--json', '--store', file];
    const { code, json } = await whileRunning(ask(args, {}, isEnough), engine);
    expect(code).toBe(130);
    const first = (type: string) => json().find((each) => each.type === type);
    expect(first('parked')).toMatchObject({
      about: 'orders',
      says: expect.stringMatching(/^late-\d+ TypeError: total is not a number \(not_retryable\)$/),
      ...{ id: expect.stringMatching(/^late-\d+$/), topic: 'orders', stop: 'not_retryable' },
      ...{ reason: 'TypeError', message: 'total is not a number' },
    });
    expect(first('act')).toMatchObject({
      about: 'bob',
      says: expect.stringMatching(/^control_set control:concurrency:\w+: /),
    });
    expect(first('process')).toMatchObject({ about: 'checkout@web-2 (7)', says: 'is here' });
    expect(json().some(({ says }) => says.startsWith('order-0 '))).toBe(false);
  });

  test('prints lines for a person, of the topics that were asked for', async () => {
    const { file, engine } = await parkedStore(0);
    const isEnough = (out: string) => / parked .* act /s.test(out) || / act .* parked /s.test(out);
    const args = ['tail', '--every', '20ms', '--topic', 'orders', '--store', file];
    const { out } = await whileRunning(ask(args, {}, isEnough), engine);
    expect(out).toMatch(/^\d\d:\d\d:\d\d\.\d{3} act {6}bob control_set control:concurrency:orders: a test$/m);
    expect(out).not.toContain('not this');
    expect((await ask(['tail', '--topic', 'ordres', '--store', file])).err).toContain(
      'did you mean "orders"?',
    );
    expect((await ask(['tail', '--for', '1ms', '--store', file])).code).toBe(0);
  });

  test.skipIf(!existsSync(script))('fits into a terminal, and ends with Ctrl-C', async () => {
    const { file, engine } = await parkedStore(0);
    const isEnough = (screen: string) => screen.includes(' parked ');
    const running = inTerminal(['tail', '--every', '20ms', '--store', file], {}, 80, isEnough);
    const { code, lines } = await whileRunning(running, engine, false);
    expect(code).toBe(130);
    expect(lines.join('\n')).toMatch(/ parked {3}orders …[\da-f]{8} TypeError: total is not a number/);
    // The terminal itself echoes Ctrl-C as `^C`, in front of whatever line is printed next.
    const printed = lines.map((line) => line.replace(/^\^C/, ''));
    expect(printed.filter((line) => widthOf(line) > 80)).toEqual([]);
  });
});
