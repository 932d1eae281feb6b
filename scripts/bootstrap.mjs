// Runs a TypeScript script of this repository on the pinned runtime, installing first where that is needed.
// Plain JavaScript without dependencies: it must run on whatever Node a fresh clone finds.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const OLDEST_NODE = 20;
const root = fileURLToPath(new URL('..', import.meta.url));
const runtime = path.join(
  root,
  'node_modules',
  'node',
  'bin',
  process.platform === 'win32' ? 'node.exe' : 'node',
);

const [script, ...options] = process.argv.slice(2);
if (script === undefined) stop(2, 'usage: node scripts/bootstrap.mjs <script.ts> [options]');
if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  stop(3, `Holdfast needs Node ${OLDEST_NODE} or newer to start, this is ${process.version}.`);
}
if (!isInstalled()) install();
handOver();

/**
 * npm keeps its own lock file of what it installed: ours, less what is optional and not for this platform. Contents and
 * not times are compared, because changing branches to and fro makes a file newer and not different.
 */
function isInstalled() {
  const installedFile = path.join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedFile) || !existsSync(runtime)) return false;
  const installed = readPackages(installedFile);
  return Object.entries(readPackages(path.join(root, 'package-lock.json'))).every(([place, wanted]) => {
    const isOurRoot = place === '';
    const found = installed[place];
    if (found === undefined) return isOurRoot || wanted.optional || wanted.devOptional;
    return JSON.stringify(found) === JSON.stringify(wanted);
  });
}

function readPackages(lockFile) {
  return JSON.parse(readFileSync(lockFile, 'utf8')).packages;
}

function install() {
  console.error(`Installing dependencies (Node ${pinnedVersion()} among them) …`);
  // One command string: on Windows npm is a .cmd file, which only a shell can start.
  const npm = spawnSync('npm ci --no-fund --no-audit --loglevel=error', {
    cwd: root,
    stdio: 'inherit',
    shell: true,
  });
  if (npm.status !== 0) stop(3, 'npm ci failed; its message is above.');
}

function pinnedVersion() {
  return JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).devDependencies.node;
}

function handOver() {
  const child = spawn(runtime, ['--conditions=holdfast-source', path.join(root, script), ...options], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: withPinnedTools(process.env.PATH ?? '') },
  });
  // A terminal sends Ctrl-C to the whole group; anything else that stops us must reach the child through us.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => stop(3, `The pinned runtime did not start: ${error.message}`));
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  });
}

/** Tools start through `#!/usr/bin/env node`, which must find the pinned runtime and not the global one. */
function withPinnedTools(searchPath) {
  return [path.join(root, 'node_modules', '.bin'), searchPath].join(path.delimiter);
}

function stop(code, message) {
  console.error(message);
  process.exit(code);
}
