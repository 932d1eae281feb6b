import {
  any,
  aws,
  breaker,
  budget,
  bulkhead,
  choice,
  definePart,
  definePolicy,
  grpc,
  hedge,
  http,
  kafka,
  limiter,
  network,
  notices,
  type Plan,
  type Policy,
  type PolicySpec,
  type Random,
  registry,
  retry,
  sql,
  throttle,
  timeout,
} from 'holdfast';
import { type Target, TargetHealth } from 'holdfast/machines';
import type { AttemptsConfig, UpstreamConfig } from '../file/gateway-config.ts';
import { Balancer, type Member, type Share } from './balancer.ts';
import type { Instance } from './instance.ts';

/**
 * A policy whose targets are the instances of an upstream. Each instance has its own breaker and latency; all
 * share one retry budget.
 */
export class AttemptPolicy {
  readonly name: string;
  readonly policy: Policy;
  config: AttemptsConfig;
  pool!: Target;
  balancer: Balancer;
  targets: readonly string[] = [];
  /** The key of the state that all instances share. It stays the same when instances are added or removed. */
  readonly #poolName: readonly [upstream: string];
  readonly #random: Random;
  readonly #members = new Map<Instance, Member>();
  readonly #instances = new Map<Target, Instance>();

  constructor(name: string, config: AttemptsConfig, upstream: UpstreamConfig, random: Random) {
    this.name = name;
    this.config = config;
    this.#poolName = [upstream.name];
    this.#random = random;
    this.balancer = balancerOf(upstream, random);
    const balance = definePart({
      key: 'balance',
      order: 1,
      fields: {},
      create: (_settings, plan) => {
        const { targetOf } = plan;
        plan.targetOf = (options, now) =>
          targetOf!(options?.targets ? { targets: this.#poolName } : options, now);
        plan.choose = (work, now, refused) =>
          this.balancer.choose(
            now,
            (work.options as { hash?: number }).hash ?? 0,
            work.guards?.tried,
            refused,
          );
      },
    });
    // These are the parts of `policy()`, without those that replace the result of a call.
    const define = definePolicy([
      ...[retry, timeout, budget, breaker, bulkhead, limiter, throttle, hedge, choice, notices, registry],
      balance,
      ...[network, http, sql, grpc, aws, kafka, any],
    ] as never);
    this.policy = define({ ...config.policy, name } as never, { random }) as Policy;
    this.#findPool();
  }

  get plan(): Plan {
    return this.policy.plan;
  }

  /** Applies a new configuration. Breakers, budgets and latencies keep their state. */
  update(config: AttemptsConfig, upstream: UpstreamConfig): void {
    this.config = config;
    this.balancer = balancerOf(upstream, this.#random);
    this.policy.update({ ...config.policy, name: this.name } as PolicySpec);
    this.#findPool();
    this.#members.clear();
    this.#instances.clear();
  }

  /** Removes the policy from the registry of `holdfast`: only policies with a name are in the registry. */
  close(): void {
    const { name: _, ...spec } = this.policy.spec as PolicySpec;
    this.policy.update(spec);
  }

  /**
   * Returns the state of an instance in this policy. With `shared`, breakers and health are those of the
   * other policy.
   */
  memberOf(instance: Instance, shared: AttemptPolicy | undefined): Member {
    const known = this.#members.get(instance);
    if (known) return known;
    const member = this.plan.targets!.get(instance.name, this.plan.clock.now()) as Member & Target;
    const other = shared?.memberOf(instance, undefined) as Target | undefined;
    if (other) {
      if (other.breaker && member.breaker) member.breaker = other.breaker;
      (member as Target).health = other.health!;
    } else (member as Target).health ??= new TargetHealth();
    this.#members.set(instance, member);
    this.#instances.set(member, instance);
    return member;
  }

  setShares(shares: readonly Share[]): void {
    // A request needs at least one name. Without shares, the balancer is empty and refuses all of them.
    if (shares.length > 0) this.targets = shares.map(({ member }) => member.name!);
    this.balancer.setShares(shares);
  }

  instanceOf(target: Target): Instance | undefined {
    return this.#instances.get(target);
  }

  forget(instance: Instance): void {
    const member = this.#members.get(instance);
    this.#members.delete(instance);
    if (member) this.#instances.delete(member);
  }

  #findPool(): void {
    const { plan } = this;
    this.pool = plan.targetOf!({ targets: this.#poolName }, plan.clock.now());
  }
}

function balancerOf({ loadBalancing, outlierEjection }: UpstreamConfig, random: Random): Balancer {
  return new Balancer(loadBalancing.strategy, outlierEjection, random);
}
