import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { HoldfastError, OptionsError, sleep, systemClock } from 'holdfast';
import type { Answers, Command } from '../admin/control.ts';
import type { GatewayConfig } from '../file/gateway-config.ts';
import type { LostWorker } from '../workers/start-gateway.ts';
import { EnvoyAdmin } from './envoy-admin.ts';
import { type EnvoyConfiguration, envoyConfiguration, fileNames } from './envoy-configuration.ts';
import { envoyFeatures } from './envoy-features.ts';
import { type DynamicFile, writeEnvoyFiles, writeResources } from './envoy-files.ts';
import { listenerName, statPrefix } from './envoy-listener.ts';
import { routesName } from './envoy-routes.ts';
import { envoyState } from './envoy-state.ts';
import type { Resource } from './resource.ts';

/** Which Envoy to use: a program to start, or one that is running. */
export interface EnvoyPlace {
  /** The program to start. Default: what `HOLDFAST_ENVOY` says, or `envoy` on the path. */
  readonly program?: string | undefined;
  /**
   * The URL of the admin interface of a running Envoy. It must read its files from `folder`. Default: none,
   * one is started.
   */
  readonly adminUrl?: string | undefined;
  /** The folder for Envoy's configuration files. Default: a new folder for temporary files. */
  readonly folder?: string | undefined;
}

type OnLost = (lost: LostWorker) => void;

const lookMs = 20;
/** How long (ms) Envoy may take to start, and to apply a new file. */
const startMs = 15_000;
const applyMs = 10_000;
/** Envoy is started again this time (ms) after a crash. */
const restartMs = 1000;
const outputMax = 4000;

/** For each file: the prefix of the statistics that show which version Envoy has applied or rejected. */
const updates: Readonly<Record<DynamicFile, string>> = {
  clusters: 'cluster_manager.cds',
  listeners: 'listener_manager.lds',
  routes: `http.${statPrefix}.rds.${routesName}`,
};

/** Runs a gateway file on Envoy: writes Envoy's files, and reads the state from its admin interface. */
export class EnvoyDataPlane {
  isDraining = false;
  workersLost = 0;
  address!: AddressInfo;
  readonly #place: EnvoyPlace;
  readonly #workers: number;
  readonly #onLost: OnLost | undefined;
  readonly #draining = new Set<string>();
  readonly #startedAt = systemClock.epochMs();
  #config: GatewayConfig;
  #folder = '';
  #admin!: EnvoyAdmin;
  #child: ChildProcess | undefined;
  #output = '';
  #version = 0;
  #isClosed = false;

  private constructor(config: GatewayConfig, workers: number, place: EnvoyPlace, onLost: OnLost | undefined) {
    this.#onLost = onLost;
    this.#config = config;
    this.#workers = workers;
    this.#place = place;
  }

  static async start(
    config: GatewayConfig,
    workers: number,
    place: EnvoyPlace = {},
    onLost?: OnLost,
  ): Promise<EnvoyDataPlane> {
    const plane = new EnvoyDataPlane(config, workers, place, onLost);
    try {
      await plane.#start();
    } catch (error) {
      await plane.close();
      throw error;
    }
    return plane;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async ask<K extends Command['kind']>(
    command: Extract<Command, { kind: K }>,
  ): Promise<readonly Answers[K][]>;
  async ask(command: Command): Promise<readonly Answers[Command['kind']][]> {
    switch (command.kind) {
      case 'state':
        return [
          await envoyState(this.#admin, {
            config: this.#config,
            draining: this.#draining,
            pid: this.pid,
            startedAt: this.#startedAt,
            isDraining: this.isDraining,
          }),
        ];
      case 'stories':
      case 'story':
        throw cannot('stories');
      case 'breaker':
        throw cannot('forcedBreaker');
      case 'drain':
        return [await this.#drainInstance(command.upstream, command.instance, command.isDraining)];
      case 'reload':
        await this.reload(command.config);
        return [true];
    }
  }

  /**
   * Adds new clusters before routes name them, and removes old ones last, so that no request fails. If Envoy
   * rejects a file, all files are restored.
   */
  async reload(config: GatewayConfig): Promise<void> {
    const before = this.#translated(this.#config);
    const next = this.#translated(config);
    try {
      await this.#apply('clusters', union(before.clusters, next.clusters));
      await this.#apply('routes', next.routes);
      await this.#apply('listeners', next.listeners);
    } catch (error) {
      for (const name of ['listeners', 'routes', 'clusters'] as const)
        await writeResources(this.#folder, name, before[name], this.#nextVersion());
      throw error;
    }
    await this.#apply('clusters', next.clusters);
    this.#config = config;
  }

  /** Resolves with the number of requests that did not end in time. */
  async drain(): Promise<number> {
    this.isDraining = true;
    const { delayMs, drainMs } = this.#config.shutdown;
    await sleep(systemClock, delayMs);
    await this.#admin.post('/drain_listeners');
    const until = systemClock.now() + drainMs;
    const active = `http.${statPrefix}.downstream_rq_active`;
    for (;;) {
      const left = Number((await this.#admin.stats(`^${active.replaceAll('.', '\\.')}$`)).get(active) ?? 0);
      if (left === 0 || systemClock.now() >= until) return left;
      await sleep(systemClock, lookMs);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    }
    if (this.#folder !== '' && this.#place.folder === undefined)
      await rm(this.#folder, { recursive: true, force: true });
  }

  async restart(): Promise<void> {
    throw new HoldfastError('HOLDFAST_ENVOY', 'Envoy has no workers that could be replaced one by one');
  }

  async #start(): Promise<void> {
    const { folder, adminUrl, program = process.env.HOLDFAST_ENVOY ?? 'envoy' } = this.#place;
    if (adminUrl !== undefined && folder === undefined)
      throw new OptionsError('envoy.folder', folder, 'the folder of the files that the running Envoy reads');
    this.#folder = folder ?? (await mkdtemp(path.join(tmpdir(), 'holdfast-envoy-')));
    if (adminUrl !== undefined) {
      this.#admin = new EnvoyAdmin(adminUrl);
      // The clusters that the running Envoy has are not known here. So the old ones are removed first, and
      // not after the routes.
      const translated = this.#translated(this.#config);
      for (const name of ['clusters', 'routes', 'listeners'] as const)
        await this.#apply(name, translated[name]);
    } else {
      await writeEnvoyFiles(this.#folder, this.#translated(this.#config), this.#nextVersion());
      await this.#launch(program);
    }
    const port = await this.#until(startMs, 'listen', () => this.#admin.portOf(listenerName));
    const { host } = this.#config.listen;
    this.address = { address: host, port, family: host.includes(':') ? 'IPv6' : 'IPv4' };
  }

  async #launch(program: string): Promise<void> {
    const addressFile = path.join(this.#folder, 'admin-address');
    await rm(addressFile, { force: true });
    const child = spawn(
      program,
      [
        ...['--config-path', path.join(this.#folder, fileNames.bootstrap)],
        ...['--admin-address-path', addressFile],
        ...['--concurrency', String(this.#workers), '--log-level', 'warning'],
        ...['--drain-time-s', String(Math.max(1, Math.ceil(this.#config.shutdown.drainMs / 1000)))],
        // With hot restart, several Envoys on one machine would conflict.
        '--disable-hot-restart',
        ...['--drain-strategy', 'immediate'],
      ],
      { stdio: ['ignore', this.#config.accessLog === true ? 'inherit' : 'ignore', 'pipe'] },
    );
    this.#child = child;
    this.#output = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-outputMax);
    });
    let failure: string | undefined;
    child.once('error', (error) => {
      failure = `${program} cannot be started: ${error.message}`;
    });
    child.once('exit', (code, signal) => {
      failure = `Envoy ended with ${signal ?? `code ${code}`}: ${this.#output.trim()}`;
      if (!this.address || this.#isClosed || this.isDraining) return;
      this.workersLost++;
      this.#onLost?.({ pid: child.pid ?? 0, code, signal });
      void this.#restart(program);
    });
    const started = async () => {
      if (failure !== undefined) throw new HoldfastError('HOLDFAST_ENVOY', failure);
      const address = await readFile(addressFile, 'utf8').catch(() => '');
      if (address === '') return undefined;
      this.#admin = new EnvoyAdmin(`http://${address.trim()}`);
      return (await this.#admin.isReady()) || undefined;
    };
    await this.#until(startMs, 'be ready', started);
  }

  /** If the new process ends as well, its `exit` event starts the next one. */
  async #restart(program: string): Promise<void> {
    await sleep(systemClock, restartMs);
    if (!this.#isClosed && !this.isDraining) await this.#launch(program).catch(() => {});
  }

  #translated(config: GatewayConfig): EnvoyConfiguration {
    return envoyConfiguration(config, { folder: this.#folder, adminPort: 0, draining: this.#draining });
  }

  #nextVersion(): string {
    return `${this.#startedAt}-${++this.#version}`;
  }

  async #apply(name: DynamicFile, resources: readonly Resource[]): Promise<void> {
    const prefix = updates[name];
    const figures = () => this.#admin.stats(`^${prefix.replaceAll('.', '\\.')}\\.`);
    const version = this.#nextVersion();
    const rejected = (stats: ReadonlyMap<string, unknown>) =>
      Number(stats.get(`${prefix}.update_rejected`) ?? 0);
    const before = rejected(await figures());
    await writeResources(this.#folder, name, resources, version);
    await this.#until(applyMs, `take ${fileNames[name]} over`, async () => {
      const now = await figures();
      if (rejected(now) > before)
        throw new HoldfastError(
          'HOLDFAST_ENVOY',
          `Envoy rejected ${fileNames[name]}: ${this.#output.trim()}`,
        );
      return now.get(`${prefix}.version_text`) === version || undefined;
    });
  }

  async #drainInstance(upstream: string, url: string, isDraining: boolean): Promise<boolean> {
    const found = this.#config.upstreams.find(({ name }) => name === upstream);
    if (!found?.instances.some((each) => each.url === url)) return false;
    if (isDraining) this.#draining.add(`${upstream} ${url}`);
    else this.#draining.delete(`${upstream} ${url}`);
    await this.#apply('clusters', this.#translated(this.#config).clusters);
    return true;
  }

  async #until<T>(withinMs: number, what: string, look: () => Promise<T | undefined>): Promise<T> {
    const until = systemClock.now() + withinMs;
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      if (systemClock.now() >= until)
        throw new HoldfastError(
          'HOLDFAST_ENVOY',
          `Envoy did not ${what} within ${withinMs} ms: ${this.#output.trim()}`,
        );
      await sleep(systemClock, lookMs);
    }
  }
}

function union(before: readonly Resource[], next: readonly Resource[]): Resource[] {
  const names = new Set(next.map(({ name }) => name));
  return [...next, ...before.filter(({ name }) => !names.has(name))];
}

function cannot(feature: 'stories' | 'forcedBreaker'): HoldfastError {
  const found = envoyFeatures[feature] as { readonly missing: string };
  return new HoldfastError('HOLDFAST_ENVOY', found.missing);
}
