import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { after } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { contentTypes, type Family, metrics, metricsHandler, observe, prometheus } from '../src/index.ts';
import { readExposition } from './exposition.ts';
import { down, ended, gone, setup, watched } from './storm.ts';

/** A server on loopback that is gone after the test. */
async function serving(handler: RequestListener): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
}

/** A policy that has been through nearly everything. */
async function weathered() {
  const made = watched({
    attempts: 2,
    breaker: { consecutive: 3 },
    budget: { ratio: 0.5 },
    bulkhead: { concurrent: 9 },
  });
  const { policy, call, clock } = made;
  await policy.try(call('fine'), { target: 'eu' });
  await ended(clock, policy.try(call(after('20ms', down), 'fine'), { target: 'eu' }));
  await policy.try(call(gone), { target: 'us' });
  for (let n = 0; n < 3; n++) await ended(clock, policy.try(call(down), { target: 'us' }));
  return made;
}

const hostile = 'a "quote", a \\ and\na line = {le="1"} #é';

describe('a scrape over HTTP', () => {
  test.each(['text', 'openmetrics'] as const)('is read by the grammar of %s', async (format) => {
    const { observed, name } = await weathered();
    const url = await serving(metricsHandler(observed));
    const response = await fetch(url, { headers: { accept: contentTypes[format] } });
    expect(response.headers.get('content-type')).toBe(contentTypes[format]);
    const families = readExposition(await response.text(), format);
    const named = (family: string) => families.find((each) => each.name === family);

    const operations = named(format === 'text' ? 'holdfast_operations_total' : 'holdfast_operations')!;
    expect(operations.type).toBe('counter');
    expect(operations.help).toBe(metrics.operations.help);
    const labels = { policy: name, target: 'eu', outcome: 'succeeded_after_retry' };
    expect(operations.samples).toContainEqual({ name: 'holdfast_operations_total', labels, value: 1 });

    const attempts = named('holdfast_attempt_seconds')!;
    expect(attempts.unit).toBe(format === 'text' ? undefined : 'seconds');
    const transient = attempts.samples.filter(
      (each) => each.labels.class === 'transient' && each.labels.target === 'eu',
    );
    const bucket = (le: string) => transient.find((each) => each.labels.le === le)?.value;
    expect([bucket('0.01'), bucket('0.025'), bucket('+Inf')]).toEqual([0, 1, 1]);
    expect(bucket(format === 'text' ? '1' : '1.0')).toBe(1);

    const breakers = named('holdfast_breaker_state')!;
    expect(
      breakers.samples.find(({ labels: { target, state } }) => target === 'us' && state === 'open')?.value,
    ).toBe(1);
  });

  test('of a HEAD has the same headers and no body', async () => {
    const { observed } = await weathered();
    const url = await serving(metricsHandler(observed));
    const [head, get] = await Promise.all([fetch(url, { method: 'HEAD' }), fetch(url)]);
    expect(await head.text()).toBe('');
    expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'));
    expect(Buffer.byteLength(await get.text())).toBe(Number(get.headers.get('content-length')));
  });

  test('is nothing but GET and HEAD', async () => {
    const observed = observe([]);
    onTestFinished(() => observed.stop());
    const url = await serving(metricsHandler(observed));
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const response = await fetch(url, { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      await response.text();
    }
  });

  test('of what cannot be read is answered, and ends nothing else', async () => {
    const broken = (): never => {
      throw new Error('no figures');
    };
    const observations = [{ snapshot: broken }, { snapshot: broken, refresh: async () => {} }];
    for (const observation of observations) {
      const handler = metricsHandler(observation);
      const byNode = await fetch(await serving(handler));
      expect([byNode.status, await byNode.text()]).toEqual([500, 'Metrics cannot be read: no figures.\n']);
      expect((await handler(new Request('http://localhost/metrics'))).status).toBe(500);
    }
    const late = metricsHandler({ snapshot: () => [], refresh: async () => broken() });
    expect((await fetch(await serving(late))).status).toBe(500);
  });

  test.each([
    [undefined, 'undefined'],
    [{ snapshots() {} }, '"an object"'],
  ])('wants an observation, not %s', (given, shown) => {
    expect(() => metricsHandler(given as never)).toThrow(
      `metricsHandler.observation: expected what observe('all') returns, got ${shown}`,
    );
  });

  test('is answered as a web handler, too', async () => {
    const { observed } = await weathered();
    const handler = metricsHandler(observed);
    const response = await handler(new Request('http://localhost/metrics'));
    expect(response.status).toBe(200);
    expect(readExposition(await response.text(), 'text').length).toBeGreaterThan(5);
    const head = await handler(new Request('http://localhost/metrics', { method: 'HEAD' }));
    expect(await head.text()).toBe('');
    const posted = await handler(new Request('http://localhost/metrics', { method: 'POST' }));
    expect(posted.status).toBe(405);
  });

  test.each([
    ['', 'text'],
    ['*/*', 'text'],
    ['text/plain', 'text'],
    // As Prometheus asks.
    [
      'application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
      'openmetrics',
    ],
    ['text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5', 'text'],
    ['application/openmetrics-text;q=0', 'text'],
    ['application/openmetrics-text;q=nonsense', 'text'],
  ] as const)('that accepts %j gets %s', async (accept, format) => {
    const response = await metricsHandler({ snapshot: () => [] })(
      new Request('http://localhost', { headers: { accept } }),
    );
    expect(response.headers.get('content-type')).toBe(contentTypes[format]);
  });
});

describe('what is written', () => {
  test('survives names with quotes, backslashes and line ends', async () => {
    const { policy, call } = setup({ name: `${hostile} ${setup().name}` });
    const observed = observe([policy]);
    onTestFinished(() => observed.stop());
    await policy.run(call('fine'), { target: hostile });
    for (const format of ['text', 'openmetrics'] as const) {
      const families = readExposition(prometheus(observed, { format }), format);
      for (const { labels } of families.flatMap(({ samples }) => samples)) {
        expect(labels.policy).toBe(policy.name);
        if ('target' in labels) expect(labels.target).toBe(hostile);
      }
    }
  });

  test('has each sample once, also where names differ in what cannot be written', async () => {
    const { policy, call } = setup();
    const observed = observe([policy]);
    onTestFinished(() => observed.stop());
    for (const target of ['half \ud83d', 'half \ude00', 'whole \ud83d\ude00'])
      await policy.run(call('fine'), { target });
    for (const format of ['text', 'openmetrics'] as const) {
      const sent = new TextDecoder().decode(new TextEncoder().encode(prometheus(observed, { format })));
      const [operations] = readExposition(sent, format);
      expect(operations!.samples.map(({ labels, value }) => [labels.target, value])).toEqual([
        ['half \ufffd', 2],
        ['whole \ud83d\ude00', 1],
      ]);
    }
  });

  test('is short, however long the names are that strangers choose', async () => {
    const { policy, call } = setup();
    const observed = observe([policy]);
    onTestFinished(() => observed.stop());
    for (let n = 0; n < 3; n++) await policy.run(call('fine'), { target: `${n}${'x'.repeat(16_000)}` });
    const [operations] = readExposition(prometheus(observed), 'text');
    expect(operations!.samples.map(({ labels }) => labels.target?.length)).toEqual([128, 128, 128]);
  });

  test('is the same again, byte by byte, and does not depend on what came first', async () => {
    const [one, other] = [setup(), setup()];
    const scrape = async (...targets: string[]) => {
      const observed = observe([one.policy]);
      for (const target of targets) await one.policy.run(one.call('fine'), { target });
      expect(prometheus(observed)).toBe(prometheus(observed));
      observed.stop();
      return prometheus(observed);
    };
    expect(await scrape('a', 'b', 'c')).toBe(await scrape('c', 'a', 'b'));
    expect(other.policy.counters.operations).toBe(0);
  });

  test('is readable whatever labels and values there are', () => {
    const family = (type: 'counter' | 'gauge', labels: object[], values: number[]): Family => ({
      ...metrics.hedges,
      name: type === 'counter' ? 'x_total' : 'x',
      type,
      help: hostile,
      samples: labels.map((each, at) => ({ labels: { ...each, metric: `${at}` }, value: values[at] ?? 0 })),
    });
    fc.assert(
      fc.property(
        fc.array(fc.record({ policy: fc.string({ unit: 'binary' }), target: fc.string() }), { minLength: 1 }),
        fc.array(fc.double({ min: 0, noNaN: true })),
        fc.constantFrom('counter' as const, 'gauge' as const),
        fc.constantFrom('text' as const, 'openmetrics' as const),
        (labels, values, type, format) => {
          const given = family(type, labels, values);
          const [read] = readExposition(prometheus({ snapshot: () => [given] }, { format }), format);
          expect(read!.help).toBe(hostile);
          expect(read!.samples.map(({ labels, value }) => ({ labels, value }))).toEqual(given.samples);
        },
      ),
    );
  });

  test('says what is wrong with the format', () => {
    expect(() => prometheus({ snapshot: () => [] }, { format: 'json' as never })).toThrow(/format: expected/);
  });

  test('refuses an option that it does not know', () => {
    expect(() => prometheus({ snapshot: () => [] }, { fromat: 'text' } as never)).toThrow(
      'fromat: not an option; did you mean format?',
    );
  });
});
