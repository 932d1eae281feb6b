import { afterAll, describe, expect, test, vi } from 'vitest';
import { freePort } from './free-port.ts';
import { ownService, titled } from './service.ts';
import { startOwn } from './start-service.ts';

const port = await freePort();
const envoy = await ownService('envoy', { settings: { 'config-yaml': answering('crumbs') } });

describe.skipIf(envoy.missing)(titled('envoy', envoy), () => {
  afterAll(async () => {
    if (envoy.missing === undefined) await envoy.stop();
  });

  test.for(['kill', 'stop'] as const)('listens on the same ports after a restart by %s', async (how) => {
    if (envoy.missing !== undefined) return;
    await vi.waitFor(async () => expect(await ask()).toBe('crumbs'));
    await envoy.restart(how);
    await vi.waitFor(async () => expect(await ask()).toBe('crumbs'));
    const admin = await fetch(`${envoy.url}/listeners`);
    expect(await admin.text()).toContain(`127.0.0.1:${port}`);
  });

  test('says what is wrong with a configuration', async () => {
    const settings = { 'config-yaml': '{ static_resources: { listeners: nonsense } }' };
    await expect(startOwn('envoy', { settings })).rejects.toThrow(/did not start: .*nonsense/s);
  });
});

async function ask(): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}`);
  return response.text();
}

/** A listener with one answer for all. JSON is YAML, too. */
function answering(text: string): string {
  const routes = [
    { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: text } } },
  ];
  const filters = 'type.googleapis.com/envoy.extensions.filters';
  const router = {
    name: 'router',
    typed_config: { '@type': `${filters}.http.router.v3.Router` },
  };
  const manager = {
    '@type': `${filters}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'test',
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    http_filters: [router],
  };
  const listener = {
    address: { socket_address: { address: '127.0.0.1', port_value: port } },
    filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }],
  };
  return JSON.stringify({ static_resources: { listeners: [listener] } });
}
