import { readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { freePort } from './free-port.ts';
import { findPrograms, systemFolders } from './programs.ts';
import type { Recipe } from './recipe.ts';

/** User and password are guest. Keys are spread over queues by the consistent-hash exchange, which is a plugin. */
export const rabbitmq: Recipe = {
  name: 'rabbitmq',
  urlVariable: 'HOLDFAST_RABBITMQ_URL',
  debianPackages: ['rabbitmq-server'],
  isHeavy: true,

  find: () => findPrograms(['rabbitmq-server', 'epmd'], [...debianFolders(), ...systemFolders]),

  async plan(programs, { folder, port, settings }) {
    const [nodesPort, distributionPort] = [await freePort(), await freePort()];
    const inFolder = (name: string) => path.join(folder, name);
    const all = {
      'listeners.tcp.1': `127.0.0.1:${port}`,
      'log.console': 'true',
      'log.file': 'false',
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}\n`);
    await writeFile(inFolder('rabbitmq.conf'), lines.join(''));
    await writeFile(inFolder('enabled_plugins'), '[rabbitmq_consistent_hash_exchange].\n');
    return {
      url: `amqp://guest:guest@127.0.0.1:${port}`,
      command: [programs['rabbitmq-server']!],
      // Erlang's directory of nodes. The server would start one by itself, which nobody ends.
      companion: [programs.epmd!, '-port', String(nodesPort), '-address', '127.0.0.1'],
      environment: {
        // The process that we start becomes the server, else a shell would stand between us.
        RUNNING_UNDER_SYSTEMD: '1',
        ERL_EPMD_PORT: String(nodesPort),
        ERL_EPMD_ADDRESS: '127.0.0.1',
        RABBITMQ_NODENAME: `holdfast${port}@localhost`,
        RABBITMQ_DIST_PORT: String(distributionPort),
        RABBITMQ_MNESIA_BASE: inFolder('data'),
        RABBITMQ_LOG_BASE: inFolder('logs'),
        RABBITMQ_CONFIG_FILE: inFolder('rabbitmq.conf'),
        RABBITMQ_ENABLED_PLUGINS_FILE: inFolder('enabled_plugins'),
        // No settings of the machine's own server.
        RABBITMQ_CONF_ENV_FILE: '/dev/null',
        HOME: folder,
      },
      stopSignal: 'SIGTERM',
      isReady: () => answersGreeting(port),
    };
  },
};

/** Debian's program on the PATH changes the user first; these do not. */
function debianFolders(): string[] {
  const parent = '/usr/lib/rabbitmq/lib';
  try {
    return readdirSync(parent).map((name) => path.join(parent, name, 'sbin'));
  } catch {
    return []; // not a machine that keeps them there
  }
}

/** AMQP 0-9-1: the client names the protocol, and the server answers with a method frame. */
function answersGreeting(port: number): Promise<boolean> {
  const methodFrame = 1;
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write('AMQP\0\0\x09\x01'));
    socket.setTimeout(1000, () => socket.destroy());
    socket.on('data', (answer) => socket.end(() => resolve(answer[0] === methodFrame)));
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(false));
  });
}
