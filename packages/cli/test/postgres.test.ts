import { joinFleet } from '@holdfast/events';
import { openPostgres } from '@holdfast/postgres';
import { policy } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { service, titled } from '../../../scripts/services/service.ts';
import { parkOrders } from './parked-store.ts';
import { ask } from './run-holdfast.ts';

const postgres = await service('postgres');

describe.skipIf(postgres.missing)(titled('on PostgreSQL', postgres), () => {
  const schema = `cli_${process.pid}`;
  const url = postgres.missing === undefined ? postgres.url : '';
  const store = `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`;
  const run = (...args: string[]) => ask([...args, '--store', store]);

  test('what is parked is listed, discarded, restored and replayed; policies obey', async () => {
    const engine = await openPostgres({ url, schema, connectionsMax: 4, durability: 'process' });
    onTestFinished(() => engine.close());
    const { fix, orders } = await parkOrders(engine, 12);
    onTestFinished(() => orders.stop());
    const payment = policy({ name: 'cli-postgres', breaker: true });
    await payment.run(async () => 'paid', { target: 'bank' });
    const member = joinFleet({ engine, service: 'checkout', every: '50ms' });
    onTestFinished(() => member.stop());

    expect((await run('status')).out).toContain('12 events parked with TypeError: total is not a number');
    const page = await run('dlq', 'ls', '--limit', '5', '--json');
    expect(page.json()).toHaveLength(5);
    const [, cursor = ''] = /--cursor (\S+)/.exec(page.err) ?? [];
    expect((await run('dlq', 'ls', '--cursor', cursor, '--json')).json()).toHaveLength(7);
    expect((await run('dlq', 'groups', '--by', 'reason', '--json')).json()).toEqual([
      { value: 'TypeError', count: 12 },
    ]);

    const discarded = await run('dlq', 'discard', '--topic', 'orders', '--why', 'a test', '--json');
    expect(discarded.json().at(-1)).toMatchObject({ kind: 'discard', stage: 'done', changed: 12 });
    const [entry] = (await run('audit', '--what', 'discard', '--json')).json();
    expect((await run('audit', '--undo', entry.id.slice(-8), '--why', 'they matter')).code).toBe(0);
    expect(await engine.triage.count({})).toBe(12);

    fix();
    const replay = await run(
      'dlq',
      'replay',
      '--all',
      '--canary',
      '1',
      '--canary-for',
      '1ms',
      '--rate',
      '500',
      '--json',
    );
    expect([replay.code, replay.json().at(-1)]).toMatchObject([0, { stage: 'done', succeeded: 12 }]);
    const forced = await run('policies', 'force', 'cli-postgres', 'open', '--for', '1m', '--why', 'a test');
    expect(forced.out).toMatch(/checkout@\S+ \(\d+\) +obeyed/);
    expect((await run('topics', 'pause', 'orders', '--only-retries', '--why', 'a test')).code).toBe(0);
    expect((await run('topics', 'ls', '--json')).json()).toMatchObject([
      { topic: 'orders', parked: 0, controls: [{ id: 'pause:orders:retries' }] },
    ]);
  });

  test('a database without the schema is not opened', async () => {
    const { code, err } = await ask(['dlq', 'ls', '--store', store.replace(schema, 'nobody')]);
    expect([code, err]).toEqual([3, expect.stringContaining('cannot be opened')]);
  });
});
