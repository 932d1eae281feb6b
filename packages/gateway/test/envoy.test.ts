import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { titled } from '../../../scripts/services/service.ts';
import { closing, freePort, serve } from '../../http/test/servers.ts';
import { EnvoyDataPlane } from '../src/envoy/envoy-data-plane.ts';
import { envoyFeatures, envoyLosses, type FeatureName, parseGateway } from '../src/index.ts';
import { envoyProgram } from './conformance/data-planes.ts';
import { eventually, send, simple } from './gateways.ts';

const found = await envoyProgram();
const program = 'path' in found ? found.path : '';
const config = (yaml: string) => {
  const parsed = parseGateway(yaml, { file: 'gateway.yaml' });
  return { ...parsed, listen: { ...parsed.listen, port: 0 }, shutdown: { delayMs: 0, drainMs: 300 } };
};
const urlOf = ({ address }: EnvoyDataPlane) => `http://127.0.0.1:${address.port}`;

describe('what Envoy loses of a file', () => {
  const all = `
listen: { port: 8080, trustedProxies: [10.0.0.0/8] }
accessLog: true
serverTiming: true
tracing: true
stores: { rateLimits: "memory:", ledger: "memory:" }
upstreams:
  all:
    instances: [http://127.0.0.1:1, http://127.0.0.1:2]
    circuitBreaker: true
    healthCheck: true
    bulkhead: true
    shedding: true
    rateLimiting: { reportOnly: true }
    retry: { attempts: 3, backoff: { strategy: constant } }
    hedge: true
    timeouts: { idle: 1s, request: 5s }
  plain:
    instances: [http://127.0.0.1:3]
    retry: { breaker: true }
routes:
  - { name: all, match: /, upstream: all, priority: critical, idempotency: { scope: client }, bulkhead: true, fallback: { stale: 1m, route: plain, static: {} } }
  - { name: plain, match: /plain, upstream: plain }
`;

  test('has every feature that Envoy lacks, for a file that uses everything', () => {
    const lacking = (Object.keys(envoyFeatures) as FeatureName[]).filter(
      (name) => envoyFeatures[name] !== true,
    );
    const losses = envoyLosses(config(all));
    expect(losses.map(({ feature }) => feature).sort()).toEqual(lacking.sort());
    const kinds = losses.map(({ kind }) => kind);
    expect(kinds.lastIndexOf('missing')).toBeLessThan(kinds.indexOf('approximated'));
  });

  test('has only what a small file uses', () => {
    const losses = envoyLosses(config(simple([{ url: 'http://127.0.0.1:1' }])));
    expect(losses.map(({ feature }) => feature).sort()).toEqual([
      'bodyLimit',
      'callerDeadline',
      'connectionsPerClient',
      'keptState',
      'retryAdvice',
      'stories',
    ]);
    expect(losses.find(({ feature }) => feature === 'bodyLimit')!.where).toEqual(['route everything']);
  });
});

describe.skipIf('missing' in found)(titled('an Envoy', 'missing' in found ? found : {}), () => {
  test('that rejects a file goes on with the one before', async () => {
    const server = await serve({ body: 'before' });
    const plane = closing(await EnvoyDataPlane.start(config(simple([server])), 1, { program }));
    const wrong = config(simple([server], '', 'match: /new'));
    const [route] = wrong.routes;
    // No file can say this: the checks before would refuse it.
    const impossible = { ...route!, attempts: { ...route!.attempts, connectTimeoutMs: 0, isOwn: true } };
    await expect(plane.reload({ ...wrong, routes: [impossible] })).rejects.toThrow('rejected clusters.json');
    expect(await send(urlOf(plane), '/old')).toMatchObject({ status: 200, body: 'before' });
    await plane.reload(config(simple([server], '', 'match: /new')));
    expect(await send(urlOf(plane), '/old')).toMatchObject({ status: 404 });
  });

  test('that dies is started again', async () => {
    const server = await serve(200);
    const port = await freePort();
    const given = config(simple([server]));
    const plane = closing(
      await EnvoyDataPlane.start({ ...given, listen: { ...given.listen, port } }, 1, { program }),
    );
    const { pid } = plane;
    process.kill(pid, 'SIGKILL');
    await eventually(
      async () => plane.pid !== pid && (await send(urlOf(plane)).catch(() => undefined))?.status === 200,
    );
  });

  test('that runs already can be taken over, and goes on afterwards', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-envoy-test-'));
    const [first, second] = [await serve({ body: 'first' }), await serve({ body: 'second' })];
    const owner = closing(await EnvoyDataPlane.start(config(simple([first])), 1, { program, folder }));
    const adminUrl = `http://${readFileSync(path.join(folder, 'admin-address'), 'utf8').trim()}`;
    const { listen, ...rest } = config(simple([second]));
    const taken = await EnvoyDataPlane.start({ ...rest, listen }, 1, { adminUrl, folder });
    expect(await send(urlOf(taken))).toMatchObject({ body: 'second' });
    await taken.close();
    expect(await send(urlOf(owner))).toMatchObject({ body: 'second' });
  });

  test('that is not there is told', async () => {
    await expect(
      EnvoyDataPlane.start(config(simple([await serve(200)])), 1, { program: '/no/such/envoy' }),
    ).rejects.toThrow('/no/such/envoy cannot be started');
  });
});
