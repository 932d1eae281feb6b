import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type Clock, type Random, Timer } from 'holdfast';
import type { AttemptsConfig, InstanceConfig, RouteConfig, UpstreamConfig } from '../file/gateway-config.ts';
import { AttemptPolicy } from './attempt-policy.ts';
import type { Share } from './balancer.ts';
import { HealthCheck } from './health-check.ts';
import { Instance, instanceName } from './instance.ts';

export interface UpstreamEnvironment {
  readonly clock: Clock;
  readonly random: Random;
  readonly zone: string | undefined;
  readonly prefix: string;
  /** Resolves a host name to all its addresses. Default: the resolver of the system. */
  readonly resolve?: ((host: string) => Promise<readonly string[]>) | undefined;
}

/** Weights are multiplied by this number. So an instance can have a tenth of its weight in its slow start. */
const shareUnits = 10;
/** How often (ms) the weights are computed again during a slow start. */
const warmingMs = 1000;
/** The most addresses of one host name, and the most instances of one upstream. */
const addressesMax = 100;
const instancesMax = 1000;

export class Upstream {
  config: UpstreamConfig;
  readonly base: AttemptPolicy;
  readonly #environment: UpstreamEnvironment;
  readonly #own = new Map<string, AttemptPolicy>();
  readonly #checks = new Map<Instance, HealthCheck>();
  readonly #addresses = new Map<string, readonly string[]>();
  readonly #resolveTimer: Timer;
  readonly #warmTimer: Timer;
  readonly #draining = new Set<string>();
  #instances: readonly Instance[] = [];
  #isClosed = false;
  #zone: string | undefined;

  constructor(config: UpstreamConfig, environment: UpstreamEnvironment) {
    this.config = config;
    this.#environment = environment;
    this.#zone = environment.zone;
    this.base = new AttemptPolicy(
      environment.prefix + config.name,
      config.attempts,
      config,
      environment.random,
    );
    this.#resolveTimer = new Timer(environment.clock, () => void this.resolve());
    this.#warmTimer = new Timer(environment.clock, () => this.refresh());
    this.#setInstances();
  }

  get instances(): readonly Instance[] {
    return this.#instances;
  }

  get policies(): readonly AttemptPolicy[] {
    return [this.base, ...this.#own.values()];
  }

  /** Returns the policy of the upstream, or a separate one for a route with own settings. */
  policyFor(route: RouteConfig): AttemptPolicy {
    if (!route.attempts.isOwn) return this.base;
    const known = this.#own.get(route.name);
    if (known) return known;
    const { prefix, random } = this.#environment;
    const name = `${prefix}${this.config.name} ${route.name}`;
    const made = new AttemptPolicy(name, route.attempts, this.config, random);
    this.#own.set(route.name, made);
    this.refresh();
    return made;
  }

  /** Applies a new configuration. Instances that stay keep their connections, breakers and health. */
  update(config: UpstreamConfig, routes: readonly RouteConfig[], zone: string | undefined): void {
    const before = this.config;
    this.#zone = zone;
    this.config = config;
    this.base.update(config.attempts, config);
    const own = new Map<string, AttemptsConfig>(
      routes.filter(({ attempts }) => attempts.isOwn).map(({ name, attempts }) => [name, attempts]),
    );
    for (const [name, policy] of this.#own) {
      const attempts = own.get(name);
      if (attempts) policy.update(attempts, config);
      else {
        policy.close();
        this.#own.delete(name);
      }
    }
    const isSameTransport = transportOf(before) === transportOf(config);
    const areSameChecks = JSON.stringify(before.healthCheck) === JSON.stringify(config.healthCheck);
    this.#setInstances(isSameTransport, areSameChecks);
    this.#resolveTimer.clear();
    void this.resolve();
  }

  /** Stops or resumes new requests to an instance. Requests in flight continue. */
  drain(name: string, isDraining: boolean): boolean {
    const found = this.#instances.filter((each) => each.name === name || each.url === name);
    for (const instance of found) {
      instance.isDraining = isDraining;
      if (!isDraining) instance.startedAt = this.#environment.clock.now();
    }
    if (isDraining) this.#draining.add(name);
    else this.#draining.delete(name);
    this.refresh();
    return found.length > 0;
  }

  /** Resolves the host names again. If a host name can not be resolved, its known addresses stay in use. */
  async resolve(): Promise<void> {
    const { resolveEveryMs } = this.config;
    if (resolveEveryMs === Infinity || this.#isClosed) return;
    const hosts = new Set(this.config.instances.map(({ url }) => hostOf(url)).filter(isName));
    if (hosts.size === 0) return;
    let hasChanged = false;
    await Promise.all(
      [...hosts].map(async (host) => {
        try {
          const found = [...new Set(await this.#lookup(host))].sort().slice(0, addressesMax);
          if (found.length === 0 || found.join() === this.#addresses.get(host)?.join()) return;
          this.#addresses.set(host, found);
          hasChanged = true;
        } catch {
          // If the host has no known address, requests fail when they connect, and report the error.
        }
      }),
    );
    if (this.#isClosed) return;
    if (hasChanged) this.#setInstances();
    this.#resolveTimer.setIn(resolveEveryMs);
  }

  refresh(): void {
    const shares = this.#shares();
    for (const policy of this.policies) {
      const shared = policy === this.base || policy.config.hasOwnBreakers ? undefined : this.base;
      policy.setShares(
        shares.map(({ instance, weight }): Share => ({ member: policy.memberOf(instance, shared), weight })),
      );
    }
  }

  /** Closes all connections. It waits for the requests in flight, unless `isForced`. */
  async close(isForced = false): Promise<void> {
    this.#isClosed = true;
    this.#resolveTimer.clear();
    this.#warmTimer.clear();
    for (const check of this.#checks.values()) check.stop();
    for (const policy of this.policies) policy.close();
    await Promise.all(
      this.#instances.map((instance) => (isForced ? instance.pool.destroy() : instance.close())),
    );
  }

  /**
   * Returns the instances that get requests. Healthy instances in the gateway's own zone come first; if too
   * few are healthy, health is ignored. A draining instance never gets requests, even if it is the last one.
   */
  #shares(): { readonly instance: Instance; readonly weight: number }[] {
    const { panicThreshold, slowStartMs } = this.config;
    const { clock } = this.#environment;
    const zone = this.#zone;
    const all = this.#instances.filter(({ isDraining }) => !isDraining);
    const healthy = all.filter(({ isHealthy }) => isHealthy);
    let chosen = healthy.length < panicThreshold * all.length || healthy.length === 0 ? all : healthy;
    const local = zone === undefined ? [] : all.filter((each) => each.zone === zone);
    const healthyLocal = local.filter(({ isHealthy }) => isHealthy);
    if (healthyLocal.length > 0 && healthyLocal.length >= panicThreshold * local.length)
      chosen = healthyLocal;
    const now = clock.now();
    const isWarm = (instance: Instance) => now - instance.startedAt >= slowStartMs;
    // If all instances are new, no other instance could take the traffic. So there is no slow start.
    const someWarm = slowStartMs > 0 && chosen.some(isWarm);
    if (someWarm && !chosen.every(isWarm)) this.#warmTimer.setIn(warmingMs);
    return chosen.map((instance) => {
      const warmth = someWarm ? Math.min(1, (now - instance.startedAt) / slowStartMs) : 1;
      return { instance, weight: Math.max(1, Math.round(instance.weight * shareUnits * warmth)) };
    });
  }

  #setInstances(keepsConnections = true, keepsChecks = true): void {
    const { clock, random } = this.#environment;
    const before = new Map(this.#instances.map((each) => [each.name, each]));
    const isFirst = before.size === 0;
    const now = clock.now();
    const wanted = this.config.instances.flatMap((config) =>
      this.#addressesOf(config).map((address) => ({ config, address })),
    );
    this.#instances = wanted.slice(0, instancesMax).map(({ config, address }) => {
      const name = instanceName(config.url, address);
      const known = keepsConnections ? before.get(name) : undefined;
      if (known) {
        before.delete(name);
        known.weight = config.weight;
        known.zone = config.zone;
        return known;
      }
      const made = new Instance(config, address, this.config, isFirst ? -Infinity : now);
      made.isDraining = this.#draining.has(name) || this.#draining.has(config.url);
      return made;
    });
    for (const removed of before.values()) {
      for (const policy of this.policies) policy.forget(removed);
      this.#checks.get(removed)?.stop();
      this.#checks.delete(removed);
      // The instance is not used any more, so errors of its connections do not matter.
      removed.close().catch(() => {});
    }
    if (!keepsChecks) {
      for (const check of this.#checks.values()) check.stop();
      this.#checks.clear();
    }
    for (const instance of this.#instances) {
      const { healthCheck } = this.config;
      if (!healthCheck) instance.isHealthy = true;
      else if (!this.#checks.has(instance))
        this.#checks.set(
          instance,
          new HealthCheck(instance, healthCheck, clock, random, () => this.refresh()),
        );
    }
    this.refresh();
  }

  /**
   * Returns one resolved address for each instance. `undefined`: the URL has an IP address, or its name is
   * not resolved yet.
   */
  #addressesOf({ url }: InstanceConfig): readonly (string | undefined)[] {
    const found = this.#addresses.get(hostOf(url));
    return found && this.config.resolveEveryMs < Infinity ? found : [undefined];
  }

  async #lookup(host: string): Promise<readonly string[]> {
    const { resolve } = this.#environment;
    if (resolve) return resolve(host);
    return (await lookup(host, { all: true })).map(({ address }) => address);
  }
}

function hostOf(url: string): string {
  return new URL(url).hostname;
}

/** `localhost` is not resolved: it usually has two addresses, and a server listens on only one of them. */
function isName(host: string): boolean {
  return host !== 'localhost' && isIP(host.replace(/^\[|\]$/g, '')) === 0;
}

function transportOf({ tls, http2, connectionsMax, attempts }: UpstreamConfig): string {
  return JSON.stringify([tls, http2, connectionsMax, attempts.connectTimeoutMs, attempts.idleTimeoutMs]);
}
