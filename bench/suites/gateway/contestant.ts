import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../../scripts/services/free-port.ts';
import { cpuNsOf } from '../../processor-time.ts';
import type { ProxyJob } from '../gateway-proxy-process.ts';
import { natives } from './native-proxies.ts';
import { coreWords } from './processors.ts';

/** The proxy has a processor of its own; what sends and what answers share the other. */
const proxyCore = 1;
export const otherCore = 0;

/** A proxy that runs in a process of its own. */
export interface Contestant extends Disposable {
  readonly name: string;
  readonly port: number;
  /** Processor time of all its threads so far. */
  cpuNs(): number;
}

/** Starts a proxy. A text says why there is none on this machine. */
export async function startContestant(name: string, upstream: string): Promise<Contestant | string> {
  if (!Object.hasOwn(natives, name)) {
    const child = forkScript('gateway-proxy-process.ts', proxyCore);
    child.send({ contestant: name, upstream } satisfies ProxyJob);
    return contestant(name, child, await firstMessage(child, name));
  }
  const port = await freePort();
  const native = await natives[name]!(upstream, port);
  if ('missing' in native) return native.missing;
  const [program, ...options] = [...coreWords(proxyCore), ...native.command];
  const child = spawn(program!, options, { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.on('data', (text) => {
    output += text;
  });
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}: ${output}`);
    if (await isListening(port)) return contestant(name, child, port);
    await pause(50);
  }
}

/** The server behind the proxies. */
export async function startUpstream(): Promise<Disposable & { readonly url: string }> {
  const child = forkScript('gateway-upstream-process.ts', otherCore);
  const port = await firstMessage(child, 'upstream');
  return { url: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => void child.kill() };
}

function forkScript(file: string, core: number): ChildProcess {
  const [program, ...options] = [...coreWords(core), process.execPath];
  return fork(path.join(import.meta.dirname, '..', file), {
    execPath: program!,
    execArgv: [...options, '--conditions=holdfast-source', '--no-warnings'],
  });
}

async function firstMessage(child: ChildProcess, name: string): Promise<number> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`The process of ${name} ended with ${code}.`);
  });
  ended.catch(() => {});
  const [port] = (await Promise.race([once(child, 'message'), ended])) as [number];
  return port;
}

function contestant(name: string, child: ChildProcess, port: number): Contestant {
  return {
    name,
    port,
    cpuNs: () => cpuNsOf(child.pid!),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
