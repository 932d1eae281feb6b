import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { findPrograms, ordinaryUser, runProgram, versionedFolders } from './programs.ts';
import type { Recipe } from './recipe.ts';

/** Enough for every test file to have a pool, and for the benchmark's peers. */
const connectionsMax = 200;

export const postgres: Recipe = {
  name: 'postgres',
  urlVariable: 'HOLDFAST_POSTGRES_URL',
  debianPackages: ['postgresql'],

  find: () =>
    findPrograms(['initdb', 'postgres', 'pg_isready'], versionedFolders('/usr/lib/postgresql', 'bin')),

  user: () => ordinaryUser('postgres'),

  async plan(programs, { folder, port, user, settings }) {
    const data = path.join(folder, 'data');
    const account = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync'];
    await runProgram([programs.initdb!, `--pgdata=${data}`, ...account], { folder, user });
    const all = {
      listen_addresses: '127.0.0.1',
      port: String(port),
      // Loopback only: a socket in a shared folder could meet another server's.
      unix_socket_directories: '',
      max_connections: String(connectionsMax),
      ...settings,
    };
    const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return {
      url: `postgres://postgres@127.0.0.1:${port}/postgres`,
      command: [programs.postgres!, '-D', data, ...options],
      // Fast: open transactions are rolled back, connections closed. The plain one would wait for every client.
      stopSignal: 'SIGINT',
      isReady: async () =>
        spawnSync(programs.pg_isready!, ['-q', '-h', '127.0.0.1', '-p', String(port)]).status === 0,
    };
  },
};
