import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { catalog, isHeavy, type ServiceName } from './catalog.ts';
import { type HeavyServer, heavyLimit } from './heavy-limit.ts';
import { findOrStart, type Missing, type OwnServer, type Server } from './start-service.ts';

/** Where the processes of a run find the registry. */
export const registryVariable = 'HOLDFAST_SERVICES';

/** How many heavy servers a run has at a time, those of single tests included. */
const heavyMax = 3;

/**
 * One place of a whole run that starts servers: each when it is first asked for, and once. `/kafka` answers with the server
 * that all share, `/own/kafka` when the caller may start one of its own. The answer is a line of JSON; of a heavy server it is
 * not ended, and whoever closes the connection, or dies, does not use the server any more.
 */
export interface Registry {
  readonly url: string;
  /** Stops what it has started. */
  close(): Promise<void>;
}

interface SharedServer extends HeavyServer {
  readonly started: Promise<Server | OwnServer | Missing>;
}

export async function openRegistry(): Promise<Registry> {
  const servers = new Map<ServiceName, SharedServer>();
  const heavy = heavyLimit(heavyMax);

  function share(name: ServiceName): SharedServer {
    const isNamed = Boolean(process.env[catalog[name].urlVariable]);
    const entry: HeavyServer = { users: [] };
    const admitted = isHeavy(name) && !isNamed ? heavy.enter(entry) : Promise.resolve();
    const started = admitted
      .then(() => findOrStart(name))
      .catch((error): Missing => ({ missing: String(error) }))
      .then((server) => {
        if (server.missing === undefined) allowStop();
        else heavy.leave(entry);
        return server;
      });
    const shared = Object.assign(entry, { started });
    servers.set(name, shared);
    return shared;

    function allowStop(): void {
      entry.stopIdle = () => {
        servers.delete(name);
        return stop(shared);
      };
      heavy.look();
    }
  }

  /** The server has this user until the connection closes. */
  function useUntilClosed({ users }: HeavyServer, user: string, response: http.ServerResponse): void {
    users.push(user);
    response.on('close', () => {
      users.splice(users.indexOf(user), 1);
      heavy.look();
    });
  }

  async function answerShared(name: ServiceName, user: string, response: http.ServerResponse) {
    const server = servers.get(name) ?? share(name);
    useUntilClosed(server, user, response);
    const { url, pid, missing } = { url: undefined, pid: undefined, ...(await server.started) };
    response.write(`${JSON.stringify({ url, pid, missing })}\n`);
    if (!isHeavy(name)) response.end();
  }

  async function answerOwn(user: string, response: http.ServerResponse) {
    const server = { users: [user] };
    response.on('close', () => heavy.leave(server));
    await heavy.enter(server);
    response.write('{}\n');
  }

  const listener = http.createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://registry');
    const [name = '', kind] = pathname.slice(1).split('/').reverse();
    const user = searchParams.get('user') ?? '';
    if (!isServiceName(name)) return void response.writeHead(404).end();
    await (kind === 'own' ? answerOwn(user, response) : answerShared(name, user, response));
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

async function stop({ started }: SharedServer): Promise<void> {
  const server = await started;
  if ('stop' in server) await server.stop();
}

function isServiceName(name: string): name is ServiceName {
  return Object.hasOwn(catalog, name);
}
