import net from 'node:net';
import { findPrograms } from './programs.ts';
import type { Recipe } from './recipe.ts';

export const redis: Recipe = {
  name: 'redis',
  urlVariable: 'HOLDFAST_REDIS_URL',
  debianPackages: ['redis-server'],

  find: () => findPrograms(['redis-server']),

  async plan(programs, { folder, port, settings }) {
    const all = {
      bind: '127.0.0.1',
      port: String(port),
      dir: folder,
      // No snapshots in the background; the log of writes as most people run it.
      save: '',
      appendonly: 'yes',
      appendfsync: 'everysec',
      ...settings,
    };
    return {
      url: `redis://127.0.0.1:${port}`,
      command: [
        programs['redis-server']!,
        ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]),
      ],
      stopSignal: 'SIGTERM',
      isReady: () => answersPing(port),
    };
  },
};

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.setTimeout(1000, () => socket.destroy());
    // While it reads its log it answers -LOADING.
    socket.on('data', (answer) => socket.end(() => resolve(answer.toString().startsWith('+PONG'))));
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(false));
  });
}
