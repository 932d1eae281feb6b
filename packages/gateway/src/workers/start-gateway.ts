import { randomBytes } from 'node:crypto';
import type { AddressInfo, Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { type Clock, OptionsError, type Random, systemClock } from 'holdfast';
import { callback, count, flag, readTable, word } from 'holdfast/fields';
import { AdminServer, type GatewayControl, type ReloadResult } from '../admin/admin-server.ts';
import { type Answers, type Command, execute } from '../admin/control.ts';
import type { WorkerState } from '../admin/worker-state.ts';
import { EnvoyDataPlane, type EnvoyPlace } from '../envoy/envoy-data-plane.ts';
import type { Environment } from '../file/environment.ts';
import type { GatewayConfig } from '../file/gateway-config.ts';
import { GatewayProcess, type ProcessOptions } from '../proxy/gateway-process.ts';
import type { Stores } from '../route/route-parts.ts';
import { ConfigSource } from './config-source.ts';
import { Fleet } from './fleet.ts';
import { openStores } from './open-stores.ts';
import { startTracing } from './tracing.ts';

/** A worker, or an Envoy, that ended unexpectedly. */
export interface LostWorker {
  readonly pid: number;
  /** The exit code; null if a signal ended it. */
  readonly code: number | null;
  /** The signal that ended it, such as `SIGKILL`; otherwise null. */
  readonly signal: string | null;
}

/** The options of `startGateway`. All other settings are in the gateway file. */
export interface GatewayOptions {
  /** The values of variables such as `${NAME}` in the file. Default: the environment of the process. */
  readonly environment?: Environment | undefined;
  /** Overrides the number of workers in the file. Default: that of the file. */
  readonly workers?: number | undefined;
  /** True: the gateway reloads when a file changes. Default: `false`. */
  readonly watch?: boolean | undefined;
  /** True: SIGHUP reloads; SIGTERM and SIGINT drain and close. Default: `false`. */
  readonly signals?: boolean | undefined;
  /** Called after each reload, for logging. Default: none. */
  readonly onReload?: ((result: ReloadResult) => void) | undefined;
  /** Called when a worker has ended unexpectedly, for logging. It is replaced. Default: none. */
  readonly onWorkerLost?: ((lost: LostWorker) => void) | undefined;
  /** Stores that are already open. Only for a gateway with one worker. Default: those that the file names. */
  readonly stores?: Partial<Stores> | undefined;
  /** The clock for all waits and timeouts. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: the system's. */
  readonly random?: Random | undefined;
  /** Resolves a host name to all its addresses. Default: the resolver of the system. */
  readonly resolve?: ProcessOptions['resolve'];
  /** The prefix for names of policies in the registry of `holdfast`. Default: `gateway/`. */
  readonly prefix?: string | undefined;
  /** What handles the traffic: this process with its workers, or an Envoy. Default: `node`. */
  readonly dataPlane?: 'node' | 'envoy' | undefined;
  /** Which Envoy to use for `dataPlane: 'envoy'`. Default: one that is started, `envoy` on the path. */
  readonly envoy?: EnvoyPlace | undefined;
}

const optionFields = {
  environment: {
    kind: 'an object',
    read: (value: unknown) => (typeof value === 'object' ? value : undefined),
  },
  workers: count(undefined, 1),
  watch: flag(),
  signals: flag(),
  onReload: callback<NonNullable<GatewayOptions['onReload']>>(),
  onWorkerLost: callback<NonNullable<GatewayOptions['onWorkerLost']>>(),
  dataPlane: word('node', 'node', 'envoy'),
};

/** A running gateway. */
export interface Gateway {
  /** The address on which clients connect. */
  readonly address: AddressInfo;
  /** The address of the admin API; undefined if the file has `admin: false`. */
  readonly adminAddress: AddressInfo | undefined;
  readonly adminToken: string | undefined;
  readonly config: GatewayConfig;
  /** Reads the file again, or applies another configuration. If it is rejected, nothing changes. */
  reload(config?: GatewayConfig): Promise<ReloadResult>;
  /** Replaces the workers one by one, so that no request fails. Rejects if there is only one worker. */
  restart(): Promise<void>;
  /**
   * Stops accepting connections and waits for requests in flight. Resolves with the number of requests that
   * did not end in time.
   */
  drain(): Promise<number>;
  /** Drains, then closes all listeners, connections and stores. */
  close(): Promise<void>;
  /** Resolves with the state of each worker. */
  state(): Promise<readonly WorkerState[]>;
}

/**
 * Starts a gateway from a file or a checked configuration. Throws a `ConfigError` if the file has errors,
 * or if `lintGateway` has a finding of severity `error`.
 */
export async function startGateway(
  source: string | GatewayConfig,
  options: GatewayOptions = {},
): Promise<Gateway> {
  const {
    environment,
    workers: given,
    watch,
    signals,
    onReload,
    onWorkerLost,
    stores,
    clock = systemClock,
    dataPlane = 'node',
    envoy,
    ...rest
  } = options;
  readTable(optionFields, { environment, workers: given, watch, signals, onReload, onWorkerLost, dataPlane });
  // The workers of Envoy are threads, which share all state, so they count as one.
  const configs = new ConfigSource(
    source,
    { environment, workers: dataPlane === 'envoy' ? 1 : given },
    clock,
  );
  const { config } = configs;
  const workers = given ?? (config.workers || availableParallelism());
  if (workers > 1 && stores)
    throw new OptionsError('stores', workers, 'one worker: others open stores themselves');
  if (dataPlane === 'node' && envoy)
    throw new OptionsError('envoy', envoy, "nothing without dataPlane: 'envoy'");
  const parts: RunningParts =
    dataPlane === 'envoy'
      ? await EnvoyDataPlane.start(config, workers, envoy, onWorkerLost)
      : workers > 1
        ? await Fleet.start(config, workers, { prefix: options.prefix, onWorkerLost })
        : await startSingle(config, { ...rest, clock, workers }, stores);

  const control: GatewayControl = {
    ask: (command) => parts.ask(command),
    reload: () => reload(),
    restart: () => parts.restart(),
    get lastReload() {
      return configs.lastReload;
    },
    get workersLost() {
      return parts.workersLost;
    },
    get isDraining() {
      return parts.isDraining;
    },
    get shownConfig() {
      return withoutSecrets(configs.config);
    },
  };
  const admin =
    config.admin &&
    new AdminServer(config.admin, config.admin.token ?? randomBytes(24).toString('base64url'), control);

  async function reload(next?: GatewayConfig): Promise<ReloadResult> {
    const result = await configs.reload((each) => parts.reload(each), next);
    if (watch) configs.watch(() => void reload());
    onReload?.(result);
    return result;
  }

  let draining: Promise<number> | undefined;
  let closing: Promise<void> | undefined;
  const drain = () => {
    draining ??= parts.drain();
    return draining;
  };
  const close = () => {
    closing ??= (async () => {
      configs.unwatch();
      for (const [signal, handler] of handlers) process.off(signal, handler);
      await drain();
      await parts.close();
      await admin?.close();
    })();
    return closing;
  };
  const handlers: [NodeJS.Signals, () => void][] = signals
    ? [
        ['SIGHUP', () => void reload()],
        ['SIGTERM', () => void close()],
        ['SIGINT', () => void close()],
      ]
    : [];
  try {
    await admin?.listen();
  } catch (error) {
    await parts.close();
    throw error;
  }
  for (const [signal, handler] of handlers) process.on(signal, handler);
  if (watch) configs.watch(() => void reload());

  return {
    address: parts.address,
    adminAddress: admin?.address,
    adminToken: admin?.token,
    get config() {
      return configs.config;
    },
    reload,
    restart: () => parts.restart(),
    drain,
    close,
    state: () => parts.ask<'state'>({ kind: 'state' }),
  };
}

/** What `SingleProcess`, `Fleet` and `EnvoyDataPlane` have in common. */
export interface RunningParts {
  readonly address: AddressInfo;
  readonly isDraining: boolean;
  readonly workersLost: number;
  ask<K extends Command['kind']>(command: Extract<Command, { kind: K }>): Promise<readonly Answers[K][]>;
  reload(config: GatewayConfig): Promise<void>;
  restart(): Promise<void>;
  drain(): Promise<number>;
  close(): Promise<void>;
}

export interface SingleProcess extends RunningParts {
  accept(socket: Socket): void;
}

/**
 * Runs a gateway in this process. With several workers, `listens` is false in each worker, because the first
 * process listens.
 */
export async function startSingle(
  config: GatewayConfig,
  { listens = true, ...options }: Omit<ProcessOptions, 'stores'> & { readonly listens?: boolean },
  given: Partial<Stores> | undefined,
): Promise<SingleProcess> {
  const { clock = systemClock } = options;
  const opened = await openStores(config, clock);
  const stores = {
    ledger: given?.ledger ?? opened.ledger,
    rateLimits: given?.rateLimits ?? opened.rateLimits,
  };
  const gateway = new GatewayProcess(config, { ...options, stores });
  let stopTracing = config.tracing ? await startTracing(gateway) : undefined;
  const close = async () => {
    stopTracing?.();
    await gateway.close();
    await opened.close();
  };
  try {
    await (listens ? gateway.listen() : gateway.prepare());
  } catch (error) {
    await close();
    throw error;
  }
  return {
    get address() {
      return gateway.address;
    },
    accept: (socket) => gateway.accept(socket),
    workersLost: 0,
    get isDraining() {
      return gateway.isDraining;
    },
    ask: async (command) => [execute(gateway, command)],
    async reload(next) {
      gateway.reload(next);
      stopTracing?.();
      // The names of policies may have changed, so start tracing again.
      stopTracing = next.tracing ? await startTracing(gateway) : undefined;
    },
    restart: () =>
      Promise.reject(new OptionsError('workers', 1, 'at least 2: a single process cannot replace itself')),
    drain: () => gateway.drain(),
    close,
  };
}

function withoutSecrets(config: GatewayConfig): unknown {
  const { admin, listen, stores, upstreams, ...rest } = config;
  const hidden = '(hidden)';
  return {
    ...rest,
    listen: { ...listen, tls: listen.tls && hidden },
    admin: admin && { ...admin, token: hidden },
    stores: {
      ledger: stores.ledger?.replace(/:\/\/.*/, '://…'),
      rateLimits: stores.rateLimits?.replace(/:\/\/.*/, '://…'),
    },
    upstreams: upstreams.map((each) => ({
      ...each,
      tls: {
        ...each.tls,
        ca: undefined,
        cert: undefined,
        key: each.tls.key === undefined ? undefined : hidden,
      },
    })),
  };
}
