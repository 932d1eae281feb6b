import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { catalog, type ServiceName } from './catalog.ts';
import { findOrStart, type Missing, type OwnServer, type Server } from './start-service.ts';

/** Where the processes of a run find the registry. */
export const registryVariable = 'HOLDFAST_SERVICES';

/** One place of a whole run that starts servers: each when it is first asked for, and once. */
export interface Registry {
  readonly url: string;
  /** Stops what it has started. */
  close(): Promise<void>;
}

export async function openRegistry(): Promise<Registry> {
  const servers = new Map<ServiceName, Promise<Server | OwnServer | Missing>>();

  function ask(name: ServiceName): Promise<Server | OwnServer | Missing> {
    const asked = servers.get(name) ?? findOrStart(name).catch((error) => ({ missing: String(error) }));
    servers.set(name, asked);
    return asked;
  }

  const listener = http.createServer(async (request, response) => {
    const name = (request.url ?? '').slice(1);
    if (!isServiceName(name)) return void response.writeHead(404).end();
    const { url, pid, missing } = { url: undefined, pid: undefined, ...(await ask(name)) };
    response.end(JSON.stringify({ url, pid, missing }));
  });
  listener.unref();
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    async close() {
      listener.close();
      listener.closeAllConnections();
      await Promise.all([...servers.values()].map(stop));
    },
  };
}

async function stop(asked: Promise<Server | OwnServer | Missing>): Promise<void> {
  const server = await asked;
  if ('stop' in server) await server.stop();
}

function isServiceName(name: string): name is ServiceName {
  return Object.hasOwn(catalog, name);
}
