import { existsSync, statfsSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { ConfigError, parsePolicies } from '@holdfast/config';
import { fleetState, isMaintained, needsOf } from '@holdfast/events';
import { systemClock } from 'holdfast';
import { StoreUnavailable } from './command.ts';
import { many } from './count-text.ts';
import { readText } from './files.ts';
import { openStore } from './store.ts';

export interface DoctorCheck {
  readonly name: string;
  /** `unsure`: this may be right, but a person has to decide. */
  readonly state: 'good' | 'bad' | 'unsure';
  readonly says: string;
  readonly fix?: string;
  /** The file could not be read, so nothing is known about it. */
  readonly isUnread?: true;
}

/** The Node version that the packages need. `@holdfast/kafka` needs a later one. */
const nodeLeast = [22, 19] as const;
const kafkaSays = 'and @holdfast/kafka needs 22.22 or 24.6';
const clockMaxMs = 1000;
const diskLeastBytes = 500e6;
const connectMs = 2000;

export function checkNode(version: string): DoctorCheck {
  const [major = 0, minor = 0] = version.slice(1).split('.').map(Number);
  const isEnough = major > nodeLeast[0] || (major === nodeLeast[0] && minor >= nodeLeast[1]);
  if (!isEnough)
    return {
      ...{ name: 'Node', state: 'bad', says: `this is ${version}, and 22.19 is needed` },
      fix: 'Install Node 24, the version with long-term support.',
    };
  const isEnoughForKafka = major > 24 || (major === 24 && minor >= 6) || (major === 22 && minor >= 22);
  return { name: 'Node', state: 'good', says: isEnoughForKafka ? version : `${version}; ${kafkaSays}` };
}

/** Checks the store itself, its clock, its disk, and whether a process runs maintenance for it. */
export async function checkStore(
  where: string,
  suggested: (words: string) => string,
): Promise<DoctorCheck[]> {
  const name = 'store';
  let engine: Awaited<ReturnType<typeof openStore>>;
  const startedAt = systemClock.now();
  try {
    engine = await openStore(where);
  } catch (error) {
    return [{ name, state: 'bad', says: (error as Error).message, fix: storeFix(where) }];
  }
  try {
    const fleet = await fleetState(engine);
    const tookMs = Math.round(systemClock.now() - startedAt);
    const topics = await engine.broker.topics();
    const { needs } = await needsOf(engine, fleet);
    const offsetMs = Math.abs(fleet.now - systemClock.epochMs());
    const checks: DoctorCheck[] = [
      {
        name,
        state: 'good',
        says: `${engine.name} opened and answered in ${tookMs} ms; ${topics.length} topics`,
      },
      offsetMs > clockMaxMs
        ? {
            ...{
              name: 'clock',
              state: 'unsure',
              says: `the store and this machine differ by ${Math.round(offsetMs)} ms`,
            },
            fix: 'Leases are counted by the store, so nothing breaks; times that you read may look odd. Check NTP.',
          }
        : { name: 'clock', state: 'good', says: 'the store and this machine agree within a second' },
      isMaintained(fleet.processes)
        ? { name: 'maintenance', state: 'good', says: 'a process that reports runs it' }
        : {
            ...{ name: 'maintenance', state: 'unsure', says: 'no process that reports runs it' },
            fix: 'Start maintenance({ engine }) of @holdfast/events in one process: it goes on with replays, applies rules and removes what has expired.',
          },
      needs.length === 0
        ? { name: 'needs', state: 'good', says: 'nothing needs a person' }
        : {
            ...{
              name: 'needs',
              state: 'unsure',
              says: `${needs.length} things need a person; the first: ${needs[0]!.says}`,
            },
            fix: suggested(needs[0]!.command),
          },
    ];
    return [...checks, ...diskOf(where)];
  } catch (error) {
    return [{ name, state: 'bad', says: (error as Error).message }];
  } finally {
    await engine.close();
  }
}

function storeFix(where: string): string {
  return where.includes('://')
    ? 'Is the server up, and do user and database exist? psql with the same URL says more.'
    : 'Say the file that your consumers open: it is made by openSqlite({ file }) of @holdfast/sqlite.';
}

/** Checks the free space on the disk of the store. Returns no check if the store is a server. */
function diskOf(where: string): DoctorCheck[] {
  if (where.includes('://') || !existsSync(where)) return [];
  const { bavail, bsize } = statfsSync(path.dirname(path.resolve(where)));
  const bytes = bavail * bsize;
  const says = `${(bytes / 1e9).toFixed(1)} GB are free`;
  if (bytes >= diskLeastBytes) return [{ name: 'disk', state: 'good', says }];
  return [
    { name: 'disk', state: 'bad', says, fix: 'A full disk refuses publishes and settlements: make room.' },
  ];
}

const defaultPorts: Readonly<Record<string, number>> = {
  ...{ 'kafka:': 9092, 'amqp:': 5672, 'amqps:': 5671, 'nats:': 4222, 'tls:': 4222 },
  ...{ 'redis:': 6379, 'rediss:': 6379, 'http:': 80, 'https:': 443, 'postgres:': 5432, 'postgresql:': 5432 },
};

/** Checks that a server listens at the address of a broker. It does not log in. */
export async function checkBroker(text: string): Promise<DoctorCheck> {
  const url = URL.parse(text);
  const port = url ? Number(url.port) || defaultPorts[url.protocol] : undefined;
  if (!url || port === undefined || url.hostname === '')
    return {
      ...{ name: 'broker', state: 'bad', says: `"${text}" is no address of a broker` },
      fix: `Say one such as kafka://localhost:9092, amqp://localhost, nats://localhost:4222 or redis://localhost.`,
    };
  const name = `broker ${url.protocol.slice(0, -1)}`;
  const place = `${url.hostname}:${port}`;
  const failure = await reached(url.hostname.replace(/^\[|\]$/g, ''), port);
  if (failure === undefined) return { name, state: 'good', says: `${place} accepts connections` };
  return {
    name,
    state: 'bad',
    says: `${place}: ${failure}`,
    fix: 'Is it started, and is a firewall between?',
  };
}

function reached(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: connectMs });
    const end = (failure?: string) => {
      socket.destroy();
      resolve(failure);
    };
    socket.once('connect', () => end());
    socket.once('timeout', () => end(`no answer in ${connectMs / 1000} s`));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}

export function checkPort(port: number): Promise<DoctorCheck> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) =>
      resolve({
        ...{
          name: `port ${port}`,
          state: 'bad',
          says: error.code === 'EADDRINUSE' ? 'is taken' : error.message,
        },
        fix:
          error.code === 'EACCES'
            ? 'Take one above 1024.'
            : 'End what listens there, or say another with --port.',
      }),
    );
    server.listen(port, '127.0.0.1', () => {
      server.close(() => resolve({ name: `port ${port}`, state: 'good', says: 'is free' }));
    });
  });
}

export async function checkFile(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<DoctorCheck> {
  try {
    const text = await readText(file);
    if (/^\s*(upstreams|routes|kind|services)\s*:/m.test(text)) {
      const { readGatewayFile } = await import('@holdfast/gateway');
      const { routes } = readGatewayFile(file, { environment });
      return { name: file, state: 'good', says: `a gateway with ${many(routes.length, 'route')}` };
    }
    const policies = parsePolicies(text, file);
    return {
      name: file,
      state: 'good',
      says: `${many(policies.size, 'policy', 'policies')}: ${[...policies.keys()].join(', ')}`,
    };
  } catch (error) {
    const says = (error as Error).message.split('\n')[0]!;
    const fix =
      error instanceof ConfigError
        ? `holdfast lint ${file}, or holdfast gateway check ${file}, lists all mistakes.`
        : undefined;
    return {
      ...{ name: file, state: 'bad', says },
      ...(fix !== undefined && { fix }),
      ...(error instanceof StoreUnavailable && { isUnread: true }),
    };
  }
}
