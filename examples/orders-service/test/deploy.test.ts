import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { buildPageIfStale } from '../../../scripts/build-page.ts';
import { root } from '../../../scripts/command.ts';
import { service, titled } from '../../../scripts/services/service.ts';
import {
  type Container,
  compose,
  composeContainer,
  kubernetes,
  kubernetesContainer,
  type Name,
  names,
  podsOf,
  textOf,
} from './deploy-files.ts';
import { freshDatabase } from './fresh-database.ts';

const postgres = await service('postgres');
const token = 'a token of this test, long enough to be taken';

const files: [string, (name: Name) => Container][] = [
  ['compose.yaml', composeContainer],
  ['kubernetes.yaml', kubernetesContainer],
];

describe.skipIf(postgres.missing).each(files)(
  titled('the commands of %s', postgres),
  (_file, containerOf) => {
    test('take an order through the gateway, answer every probe, and end on a signal', async () => {
      await buildPageIfStale();
      const store = await freshDatabase(postgres.missing === undefined ? postgres.url : '');
      // Addresses and secrets are those of the test; everything else is as the file has it.
      const orders = await start(containerOf('orders'), { HOLDFAST_STORE: store, DRAIN_DELAY_MS: '100' });
      await orders.printed(/orders are taken on/);
      const gateway = await start(containerOf('gateway'), {
        ORDERS_URL: orders.url('PORT'),
        HOLDFAST_GATEWAY_TOKEN: token,
        SHUTDOWN_DELAY: '100ms',
      });
      await gateway.printed(/The admin API is on/);
      const console_ = await start(containerOf('console'), {
        HOLDFAST_STORE: store,
        HOLDFAST_CONSOLE_TOKEN: token,
        HOLDFAST_GATEWAY: gateway.url('ADMIN_PORT'),
        HOLDFAST_GATEWAY_TOKEN: token,
      });
      await console_.printed(/#token=/);

      for (const { probes, ask } of [orders, gateway, console_])
        expect(await Promise.all(probes.map(ask))).toEqual(probes.map(() => 200));

      const place = () =>
        fetch(`${gateway.url('PORT')}/orders`, {
          method: 'POST',
          body: '{"item":"book"}',
          headers: { 'idempotency-key': 'a' },
        });
      const placed = { id: 1, item: 'book', status: 'placed' };
      await expect.poll(async () => (await place()).status, { timeout: 10_000 }).toBe(201);
      const again = await place();
      expect([await again.json(), again.headers.get('idempotent-replayed')]).toEqual([placed, 'true']);
      const order = async () => (await fetch(`${gateway.url('PORT')}/orders/1`)).json();
      await expect.poll(order, { timeout: 15_000 }).toEqual({ ...placed, status: 'charged' });
      expect((await fetch(`${gateway.url('PORT')}/orders/2`)).status).toBe(404);

      const seen = async (route: string) => {
        const headers = { authorization: `Bearer ${token}` };
        return (await fetch(`${console_.url('--port')}/api/v1${route}`, { headers })).json();
      };
      expect(await seen('/topics')).toMatchObject({
        items: [{ topic: 'orders', consumers: [{ name: 'charge-orders@1' }] }],
      });
      expect(await seen('/gateway')).toMatchObject({ state: { workers: [{}] } });

      for (const each of [console_, gateway, orders]) expect(await each.end()).toBe(0);
    }, 60_000);
  },
);

test('every variable that the files set is read by something in the repository', () => {
  const read = globSync(
    ['examples/orders-service/src/*.ts', 'packages/cli/src/**/*.ts', 'deploy/gateway.yaml'],
    {
      cwd: root,
    },
  );
  const text = read.map((file) => readFileSync(path.join(root, file), 'utf8')).join('\n');
  for (const name of names)
    for (const [, containerOf] of files)
      for (const variable of Object.keys(containerOf(name).env))
        expect(text).toMatch(new RegExp(`\\b${variable}\\b`));
});

test('both files run the same commands with the same variables', () => {
  for (const name of names) {
    const [one, other] = [composeContainer(name), kubernetesContainer(name)];
    expect(one.command).toEqual(other.command);
    expect(Object.keys(one.env).sort()).toEqual(Object.keys(other.env).sort());
  }
});

test('no file has a secret', () => {
  for (const name of names)
    for (const [, containerOf] of files)
      for (const [variable, value] of Object.entries(containerOf(name).env))
        expect([variable, value === undefined]).toEqual([variable, /TOKEN|PASSWORD|STORE/.test(variable)]);
  expect(compose.postgres!.environment.POSTGRES_PASSWORD).toMatch(/^\$\{POSTGRES_PASSWORD:\?/);
  const keys = kubernetes.flatMap(({ spec }) =>
    (spec.template?.spec.containers ?? []).flatMap(({ env }) => env.flatMap((each) => each.valueFrom ?? [])),
  );
  for (const { secretKeyRef } of keys) {
    expect(secretKeyRef.name).toBe('holdfast-orders');
    expect(textOf('README.md')).toContain(`--from-literal=${secretKeyRef.key}=`);
  }
});

test.each(['postgres', ...names])(
  '%s runs without root, on a read-only file system, within limits',
  (name) => {
    expect(compose[name]).toMatchObject({
      user: expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/),
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      mem_limit: expect.any(String),
    });
    const { securityContext, containers, volumes, terminationGracePeriodSeconds } = podsOf(name);
    expect(securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: Number.parseInt(compose[name]!.user, 10),
    });
    expect(terminationGracePeriodSeconds).toBeGreaterThan(0);
    const claims = kubernetes
      .flatMap(({ spec }) => spec.volumeClaimTemplates ?? [])
      .map(({ metadata }) => metadata);
    const mountable = [...volumes, ...claims].map((volume) => volume.name);
    for (const container of containers) {
      expect(container).toMatchObject({
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        resources: {
          requests: { cpu: expect.any(String), memory: expect.any(String) },
          limits: expect.any(Object),
        },
      });
      for (const mount of container.volumeMounts) expect(mountable).toContain(mount.name);
    }
  },
);

test('orders and gateway have probes on /livez and /readyz, and time to finish', () => {
  for (const name of ['orders', 'gateway'] as const) {
    const paths = kubernetesContainer(name).probes.map((probe) => probe.path);
    expect(paths).toEqual(['/livez', '/livez', '/readyz']);
    expect(composeContainer(name).probes.map((probe) => probe.path)).toEqual(['/readyz']);
  }
  // Drain delay, patience for requests, and for events.
  expect(podsOf('orders').terminationGracePeriodSeconds).toBeGreaterThan(5 + 25 + 20);
  expect(podsOf('gateway').terminationGracePeriodSeconds).toBeGreaterThan(5 + 25);
});

test('every service of the cluster leads to a port of its pods, and every address to a service', () => {
  const services = kubernetes.filter(({ kind }) => kind === 'Service');
  for (const { spec } of services) {
    const pods = kubernetes.find(
      (each) => each.spec.template?.metadata.labels.app === (spec.selector as { app: string }).app,
    );
    const ports = pods!.spec.template!.spec.containers.flatMap((each) => each.ports.map(({ name }) => name));
    for (const { targetPort } of spec.ports!) expect(ports).toContain(targetPort);
  }
  const known = services.flatMap(({ metadata, spec }) =>
    spec.ports!.map(({ port }) => `${metadata.name}:${port}`),
  );
  const addresses = textOf('kubernetes.yaml').match(/(?<=http:\/\/)[\w-]+:\d+/g)!;
  expect(addresses).toHaveLength(2);
  for (const address of addresses) expect(known).toContain(address);
});

test('what the Dockerfile copies is there, and its Node is the pinned one', () => {
  const dockerfile = textOf('Dockerfile');
  const copied = [...dockerfile.matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, sources]) => sources!.split(' '));
  expect(copied.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
  const { devDependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  expect(dockerfile).toContain(`FROM node:${devDependencies.node}-slim\n`);
  const { build } = compose.orders!;
  expect(existsSync(path.join(root, 'deploy', build!.context, build!.dockerfile))).toBe(true);
  // A command can only run what the image has.
  for (const name of names)
    for (const file of composeContainer(name).command.filter((word) => word.includes('/')))
      expect([file, copied.some((folder) => file.startsWith(folder))]).toEqual([file, true]);
});

test('the health check of compose tells a good answer from a bad one', async () => {
  const server = createServer((asked, response) =>
    response.writeHead(asked.url === '/readyz' ? 200 : 503).end(),
  );
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const [, , ...options] = compose.orders!.healthcheck.test.map((word) => word.replace(':3000', `:${port}`));
  const run = (args: string[]) =>
    promisify(execFile)(process.execPath, args).then(
      () => 0,
      ({ code }) => code,
    );
  expect(await run(options)).toBe(0);
  expect(await run(options.map((word) => word.replace('/readyz', '/elsewhere')))).toBe(1);
});

interface Running {
  readonly probes: Container['probes'];
  ask(probe: Container['probes'][number]): Promise<number>;
  printed(pattern: RegExp): Promise<void>;
  /** Where it listens, by the variable or the flag that has the port in the file. */
  url(port: string): string;
  end(): Promise<number | null>;
}

/** Runs a command of a file, on loopback and on free ports instead of those of the file. */
async function start({ command, env, probes }: Container, given: Record<string, string>): Promise<Running> {
  const ports = new Map<string, number>();
  const places = new Map<string, number>();
  const free = async (place: string, declared: string) => {
    const port = await freePort();
    ports.set(declared, port);
    places.set(place, port);
    return String(port);
  };
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (/PORT$/.test(name)) environment[name] = await free(name, value!);
    else if (name === 'HOST') environment[name] = '127.0.0.1';
    else environment[name] = given[name] ?? value!;
  }
  const [program, ...words] = command;
  expect(program).toBe('node');
  const options: string[] = [];
  for (const [index, word] of words.entries()) {
    const flag = words[index - 1] ?? '';
    if (flag === '--port') options.push(await free(flag, word));
    else options.push(word === '0.0.0.0' ? '127.0.0.1' : word);
  }
  const child = spawn(process.execPath, options, {
    cwd: root,
    env: { PATH: process.env.PATH, ...given, ...environment },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return {
    probes,
    ask: ({ port, path: page, headers }) => statusOf(ports.get(String(port))!, page, headers),
    printed: (pattern) => expect.poll(() => output, { timeout: 20_000 }).toMatch(pattern) as Promise<void>,
    url: (port) => `http://127.0.0.1:${places.get(port)}`,
    end: () => endOf(child, ended),
  };
}

function endOf(child: ChildProcess, ended: Promise<number | null>): Promise<number | null> {
  child.kill('SIGTERM');
  return ended;
}

/** As a cluster asks: `fetch` does not let a caller set the header Host. */
async function statusOf(
  port: number,
  page: string,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const asked = request({ host: '127.0.0.1', port, path: page, headers, agent: false }).end();
  const [response] = await once(asked, 'response');
  response.resume();
  return response.statusCode;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
