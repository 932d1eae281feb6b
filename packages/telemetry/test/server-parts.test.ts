import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bulkhead, deadline, rateLimit, shed } from '@holdfast/server';
import { guard } from '@holdfast/server/node';
import { describe, expect, onTestFinished, test } from 'vitest';
import { observeServer, prometheus, type ServerPartLike, serverMetrics } from '../src/index.ts';
import { readExposition } from './exposition.ts';

function scraped(parts: readonly ServerPartLike[], name?: string): Record<string, number> {
  const families = readExposition(prometheus(observeServer(parts, { name })), 'text');
  return Object.fromEntries(
    families.flatMap(({ samples }) =>
      samples.map(({ name, labels, value }) => [`${name} ${Object.values(labels).join(' ')}`, value]),
    ),
  );
}

describe('server parts as metrics', () => {
  test('count what real requests met', async () => {
    const limit = rateLimit({ limits: [{ rate: '2/h', burst: 2 }] });
    const room = bulkhead({ concurrent: 5 });
    const shedding = shed();
    const time = deadline();
    const parts = [limit, room, shedding, time];
    const server = createServer(guard(parts, (_request, response) => void response.end('ok')));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const statuses: number[] = [];
    for (let n = 0; n < 3; n++) statuses.push((await fetch(url)).status);
    await fetch(url, { headers: { 'x-request-timeout-ms': '0' } });
    expect(statuses).toEqual([200, 200, 429]);
    expect(scraped(parts, 'shop')).toMatchObject({
      'holdfast_server_rate_limit_total shop allowed': 2,
      'holdfast_server_rate_limit_total shop refused': 1,
      'holdfast_server_timed_out_total shop on_arrival': 1,
      'holdfast_server_limit shop bulkhead': 5,
      'holdfast_server_limit shop shed': 20,
      'holdfast_server_in_flight shop bulkhead': 0,
      'holdfast_server_shed_total shop critical': 0,
    });
  });

  test('name each count of idempotency and degradation', () => {
    const parts = [
      {
        name: 'idempotency',
        counts: { executed: 5, replayed: 2, refused: 1, failedClosed: 3, unrecorded: 0 },
      },
      { name: 'degrade', counts: { stale: 4, fallback: 1 } },
    ];
    expect(scraped(parts)).toEqual({
      'holdfast_server_idempotency_total server executed': 5,
      'holdfast_server_idempotency_total server replayed': 2,
      'holdfast_server_idempotency_total server refused': 1,
      'holdfast_server_idempotency_total server failed_closed': 3,
      'holdfast_server_idempotency_total server unrecorded': 0,
      'holdfast_server_degraded_total server stale': 4,
      'holdfast_server_degraded_total server fallback': 1,
    });
  });

  test('are those of the document', async () => {
    const document = await readFile(new URL('../../../docs/telemetry.md', import.meta.url), 'utf8');
    for (const { name, type, labels, help } of Object.values(serverMetrics)) {
      const named = labels.map((each) => `\`${each}\``).join(', ');
      expect(document).toContain(`| \`${name}\` | ${type} | ${named} | ${help} |`);
    }
  });

  test('refuse what is no list of parts', () => {
    expect(() => observeServer('shop' as never)).toThrow('parts: expected a list of parts');
    expect(() => observeServer([], { nmae: 'x' } as never)).toThrow('nmae');
  });
});
