import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { serve } from '../../http/test/servers.ts';
import { openApi } from '../src/admin/openapi.ts';
import { ask, eventually, send, simple, start } from './gateways.ts';

describe('the admin API', () => {
  test('needs its token, except for the two that load balancers ask', async () => {
    const gateway = await start(simple([await serve(200)]));
    for (const token of ['', 'wrong', 'a-tokeN', 'a-token-and-more']) {
      expect(await ask(gateway, '/state', { token })).toMatchObject({ status: 401 });
      expect(await ask(gateway, '/nothing', { token })).toMatchObject({ status: 401 });
      expect(await ask(gateway, '/livez', { token })).toMatchObject({ status: 200 });
      expect(await ask(gateway, '/readyz', { token })).toMatchObject({ status: 200 });
    }
    expect(gateway.adminAddress!.address).toBe('127.0.0.1');
  });

  test('is described by its OpenAPI document, path by path', async () => {
    const gateway = await start(simple([await serve(200)]));
    const { body } = await ask(gateway, '/openapi.json');
    expect(body).toEqual(JSON.parse(JSON.stringify(openApi)));
    for (const [template, methods] of Object.entries(openApi.paths)) {
      for (const method of Object.keys(methods)) {
        const given = template.replaceAll(/\{\w+\}/g, 'x');
        const { status, text } = await ask(gateway, given, { method: method.toUpperCase() });
        const isKnown = status !== 404 || template.includes('{');
        expect([method, template, isKnown, text !== ''], text).toEqual([method, template, true, true]);
      }
    }
  });

  test('shows the state, and the configuration without secrets', async () => {
    const gateway = await start(
      simple([await serve(200)], 'circuitBreaker: {}', '', 'stores: { rateLimits: "memory:" }'),
    );
    await send(gateway.url);
    const { body } = await ask(gateway, '/state');
    expect(body).toMatchObject({
      isDraining: false,
      lastReload: null,
      workers: [
        {
          routes: [{ name: 'everything', requests: 1, statuses: { '2xx': 1 } }],
          upstreams: [{ name: 'api', instances: [{ isHealthy: true, breaker: 'closed', inFlight: 0 }] }],
        },
      ],
    });
    const { text } = await ask(gateway, '/config');
    expect(text).toContain('(hidden)');
    expect(text).not.toContain('a-token');
  });

  test('has metrics for Prometheus', async () => {
    const upstream = await serve(503, 200);
    const gateway = await start(
      simple([upstream], 'circuitBreaker: {}\nretry: { attempts: 2, backoff: { base: 1ms, cap: 1ms } }'),
    );
    await send(gateway.url);
    await send(gateway.url, '/a%2fb');
    const { text } = await ask(gateway, '/metrics');
    for (const line of [
      'holdfast_gateway_requests_total{route="everything",upstream="api",status="2xx"} 1',
      'holdfast_gateway_requests_total{route="none",status="4xx"} 1',
      'holdfast_gateway_retries_total{route="everything",upstream="api"} 1',
      'holdfast_gateway_attempts_total{upstream="api"} 2',
      `holdfast_gateway_breaker_state{upstream="api",instance="${upstream.url}",state="closed"} 1`,
      'holdfast_gateway_request_seconds_count{route="everything",upstream="api"} 1',
    ])
      expect(text.split('\n')).toContain(line);
  });

  test('forces a breaker open and closed, and gives it back', async () => {
    const upstream = await serve(200);
    const gateway = await start(simple([upstream], 'circuitBreaker: {}'), { prefix: 'forced/' });
    const force = (state: string, target?: string) =>
      ask(gateway, '/breakers', {
        method: 'POST',
        body: { policy: 'forced/api', target, state, because: 'a test' },
      });
    expect(await force('open', upstream.url)).toMatchObject({ status: 200, body: { breakers: 1 } });
    expect(await send(gateway.url)).toMatchObject({ status: 503 });
    expect((await gateway.state())[0]!.upstreams[0]!.instances[0]).toMatchObject({ forced: 'open' });
    await force('auto');
    expect(await send(gateway.url)).toMatchObject({ status: 200 });
    expect(await force('ajar')).toMatchObject({ status: 400 });
    expect(await force('open', 'http://nobody')).toMatchObject({ status: 404 });
    expect(
      await ask(gateway, '/breakers', { method: 'POST', body: { policy: 'none', state: 'open' } }),
    ).toMatchObject({ status: 404 });
  });

  test('takes the name of an upstream for all its breakers, and knows what was meant', async () => {
    const server = await serve(200);
    const own = 'routes:\n  - { name: own, match: /own, upstream: api, circuitBreaker: { timeout: 1s } }';
    const yaml = simple([server], 'circuitBreaker: {}').replace('routes:', own);
    const gateway = await start(
      `${yaml}`.replace('upstreams:', 'upstreams:\n  plain: { instances: "http://127.0.0.1:1" }'),
      {
        prefix: 'named/',
      },
    );
    const force = async (policy: string, target?: string) => {
      const { status, body } = await ask(gateway, '/breakers', {
        method: 'POST',
        body: { policy, target, state: 'open' },
      });
      return [status, ...Object.values(body as object)];
    };
    expect(await force('api')).toEqual([200, 2]);
    expect(await send(gateway.url)).toMatchObject({ status: 503 });
    expect(await send(gateway.url, '/own')).toMatchObject({ status: 503 });
    expect(await force('ap')).toEqual([404, 'there is no upstream or policy ap; did you mean "api"?']);
    expect(await force('named/apii')).toEqual([
      404,
      'there is no upstream or policy named/apii; did you mean "named/api"?',
    ]);
    expect(await force('api', `${server.url}0`)).toEqual([
      404,
      `api has no instance ${server.url}0; did you mean "${server.url}"?`,
    ]);
    expect(await force('plain')).toEqual([
      404,
      'plain has no breaker: its part of the file has no circuitBreaker',
    ]);
  });

  test('tells the latest stories', async () => {
    const gateway = await start(simple([await serve(503)], '', '', 'stories: 2'));
    const ids = [];
    for (let count = 0; count < 3; count++) ids.push((await send(gateway.url)).headers['x-request-id']);
    const { body } = await ask(gateway, '/stories?count=10');
    expect((body as { stories: { id: string }[] }).stories.map(({ id }) => id)).toEqual([ids[2], ids[1]]);
    expect(await ask(gateway, `/stories/${ids[0]}`)).toMatchObject({ status: 404 });
  });
});

describe('the access log', () => {
  test('has one line of JSON for each request, with attempts and reasons and without secrets', async () => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'holdfast-gateway-')), 'access.log');
    const failing = await serve(503, 200);
    const gateway = await start(
      simple(
        [failing],
        'retry: { attempts: 2, backoff: { base: 1ms, cap: 1ms } }\nrateLimiting: { burstSize: 1, requestsPerSecond: 0.01 }',
        'match: /a',
        `accessLog: "${file}"`,
      ),
    );
    await send(gateway.url, '/a?token=secret', { headers: { authorization: 'Bearer secret' } });
    await send(gateway.url, '/a');
    await send(gateway.url, '/nowhere');
    await gateway.close();
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        method: 'GET',
        path: '/a',
        route: 'everything',
        upstream: 'api',
        instance: failing.url,
        status: 200,
        attempts: 2,
        bytes: 5,
        client: '127.0.0.1',
        reasons: [`${failing.url} transient 503 retry transient`],
      },
      { path: '/a', status: 429, attempts: 0, instance: null },
      { path: '/nowhere', status: 404, route: null },
    ]);
    expect(lines.join()).not.toContain('secret');
  });
});

describe('Server-Timing', () => {
  test('says how long the upstream took, and how many attempts', async () => {
    const gateway = await start(simple([await serve(200)], '', '', 'serverTiming: true'));
    const { headers } = await send(gateway.url);
    expect(headers['server-timing']).toMatch(/^upstream;dur=\d+\.\d, attempts;desc="1"$/);
  });
});

describe('tracing', () => {
  test('makes a span for each request and attempt', async () => {
    const { context, trace } = await import('@opentelemetry/api');
    const { AsyncLocalStorageContextManager } = await import('@opentelemetry/context-async-hooks');
    const { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } = await import(
      '@opentelemetry/sdk-trace'
    );
    const exporter = new InMemorySpanExporter();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(
      new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
    );
    const gateway = await start(
      simple(
        [await serve(503, 200)],
        'retry: { attempts: 2, backoff: { base: 1ms, cap: 1ms } }',
        '',
        'tracing: true',
      ),
    );
    expect(await send(gateway.url)).toMatchObject({ status: 200 });
    const spans = await eventually(() => {
      const all = exporter.getFinishedSpans();
      return all.length >= 3 && all;
    });
    expect(spans.length).toBe(3);
    trace.disable();
    context.disable();
  });
});
