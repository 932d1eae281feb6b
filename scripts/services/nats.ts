import { writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { findPrograms, systemFolders } from './programs.ts';
import type { Recipe } from './recipe.ts';

/** With JetStream, which keeps its streams in files. */
export const nats: Recipe = {
  name: 'nats',
  urlVariable: 'HOLDFAST_NATS_URL',
  debianPackages: ['nats-server'],

  find: () => findPrograms(['nats-server'], systemFolders),

  async plan(programs, { folder, port, settings }) {
    const all = {
      listen: `"127.0.0.1:${port}"`,
      jetstream: `{ store_dir: ${JSON.stringify(path.join(folder, 'jetstream'))}, max_file: 8G }`,
      ...settings,
    };
    const file = path.join(folder, 'nats.conf');
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\n`);
    await writeFile(file, lines.join(''));
    return {
      url: `nats://127.0.0.1:${port}`,
      command: [programs['nats-server']!, '-c', file],
      stopSignal: 'SIGTERM',
      isReady: () => hasJetStream(port),
    };
  },
};

/** The server speaks first. */
function hasJetStream(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.setTimeout(1000, () => socket.destroy());
    socket.on('data', (greeting) =>
      socket.end(() => resolve(/^INFO .*"jetstream":true/.test(String(greeting)))),
    );
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(false));
  });
}
