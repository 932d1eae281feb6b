import { type CallSettings, type Scenario, underTest } from '@holdfast/config';
import { type Environment, type Policy, type PolicySpec, policy } from 'holdfast';
import { Cache } from './cache.ts';
import { Caller } from './caller.ts';
import { makeClients } from './clients.ts';
import { plantCapacity, plantFault } from './faults.ts';
import { Results } from './results.ts';
import { Service } from './service.ts';
import { CallerTally } from './tally.ts';
import { Watch } from './watch.ts';
import { World } from './world.ts';

/** Options that both `simulate` and a trial of several runs have. */
export interface AnyRunOptions {
  /** Policies by name, in addition to the policies of the scenario. Default: none. */
  readonly policies?: ReadonlyMap<string, PolicySpec> | undefined;
  /** Replaces the duration of the scenario, in ms. Default: the duration of the scenario. */
  readonly durationMs?: number | undefined;
  /** Creates a policy from its options. Default: `policy` of the package `holdfast`. */
  readonly make?: ((spec: PolicySpec, environment: Environment) => Policy) | undefined;
}

/** The options of `simulate`. `policy` is required. */
export interface SimulationOptions extends AnyRunOptions {
  /** The name of the policy under test. The scenario or `policies` defines it. Required. */
  readonly policy: string;
  /** The seed of all random numbers. Default: the first seed of the scenario. */
  readonly seed?: number | undefined;
  /**
   * The run fails when more calls than this wait in one queue. This limits memory: a waiting call takes about
   * 1 KB. Default: `2000000`.
   */
  readonly waitingMax?: number | undefined;
}

/** After the load has stopped, pending calls have this many ms to end. */
const drainMaxMs = 60_000;

const defaultWaitingMax = 2_000_000;

/** Runs a scenario without promises, because they are slow. The same arguments give the same results. */
export function simulate(scenario: Scenario, options: SimulationOptions): Results {
  const stage = new Stage(scenario, options, false);
  return withoutStacks(() => {
    stage.start();
    stage.world.timeline.run(stage.endUs, () => true);
    stage.world.timeline.run(stage.endUs + drainMaxMs * 1000, () => stage.isOpen);
    return stage.results();
  });
}

/**
 * Like `simulate`, but with `policy.run` and promises, as in real programs. It is slower, but the events of the
 * run are the same.
 */
export async function simulateAsync(scenario: Scenario, options: SimulationOptions): Promise<Results> {
  const stage = new Stage(scenario, options, true);
  stage.start();
  await stage.world.timeline.runPromised(stage.endUs, () => true);
  await stage.world.timeline.runPromised(stage.endUs + drainMaxMs * 1000, () => stage.isOpen);
  return stage.results();
}

/** Each attempt that times out creates an error. Its stack trace would make the simulation slow. */
function withoutStacks<R>(run: () => R): R {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return run();
  } finally {
    Error.stackTraceLimit = before;
  }
}

class Stage {
  readonly world: World;
  readonly endUs: number;
  readonly #scenario: Scenario;
  readonly #options: SimulationOptions;
  readonly #services = new Map<string, Service>();
  readonly #caches = new Map<string, Cache>();
  readonly #clients = new Map<string, CallerTally>();
  readonly #tiers = new Map<string, CallerTally>();
  readonly #watch: Watch;
  /**
   * For each `PolicySpec`, the first policy made from it. Further policies are copies with their own state.
   */
  readonly #firstOf = new Map<PolicySpec, Policy>();
  #callers = 0;

  constructor(scenario: Scenario, options: SimulationOptions, isPromised: boolean) {
    this.#scenario = scenario;
    this.#options = options;
    const { seed = scenario.seeds[0] ?? 1, waitingMax = defaultWaitingMax } = options;
    this.world = new World(seed, isPromised, waitingMax);
    this.endUs = (options.durationMs ?? scenario.duration) * 1000;
    this.#watch = new Watch(this.world, this.#services, this.endUs);
    for (const [name, settings] of Object.entries(scenario.services)) {
      this.#services.set(name, new Service(this.world, name, settings));
      if (settings.cache) this.#caches.set(name, new Cache(this.world, name, settings.cache));
    }
    for (const [name, service] of this.#services) {
      const { calls, routes } = service.settings;
      service.route.calls.push(...calls.flatMap((call) => this.#callersOf(name, call)));
      for (const [key, { calls: its }] of Object.entries(routes)) {
        service.routes
          .get(key)!
          .calls.push(...its.flatMap((call) => this.#callersOf(`${name}.${key}`, call)));
      }
    }
  }

  get isOpen(): boolean {
    for (const { open } of this.#clients.values()) if (open > 0) return true;
    return false;
  }

  start(): void {
    const { world } = this;
    this.#watch.start();
    for (const service of this.#services.values()) plantCapacity(world, service);
    for (const fault of this.#scenario.faults) {
      const cache = this.#caches.get(fault.service);
      plantFault(world, fault, this.#services.get(fault.service)!, cache ? [cache] : [], this.endUs);
    }
    for (const [name, settings] of Object.entries(this.#scenario.clients)) {
      const tally = new CallerTally();
      tally.clients = settings.count;
      const isShared = settings.state === 'shared';
      const callers: Caller[] = [];
      const spec = this.#specOf(settings.policy, settings.attemptTimeout);
      this.#clients.set(name, tally);
      const callerOf = (client: number): Caller => {
        const index = isShared ? 0 : client;
        callers[index] ??= new Caller(world, {
          id: ++this.#callers,
          policy: this.#make(spec, name, index, tally),
          service: this.#services.get(settings.to)!,
          tally,
          cache: this.#caches.get(settings.to),
          route: settings.route,
          patienceMs: settings.patience,
          leavesAfterMs: settings.leavesAfter,
          priority: settings.priority,
          failing: settings.failing,
          poisonMs: settings.poisonTime,
        });
        return callers[index];
      };
      makeClients(world, { name, settings, tally, callerOf, untilUs: this.endUs }).start();
    }
  }

  results(): Results {
    return new Results({
      scenario: this.#scenario,
      policy: this.#options.policy,
      durationMs: this.endUs / 1000,
      endedAtMs: this.world.timeline.now(),
      events: this.world.timeline.events,
      hash: this.world.trace.hash,
      clients: this.#clients,
      tiers: this.#tiers,
      services: this.#services,
    });
  }

  /** Returns the same caller `times` times, because all these calls share one policy. */
  #callersOf(from: string, call: CallSettings): Caller[] {
    return new Array<Caller>(call.times).fill(this.#tier(from, call));
  }

  #tier(from: string, { to, policy: name, attemptTimeout, tells }: CallSettings): Caller {
    const key = `${from} → ${to}`;
    const tally = new CallerTally();
    this.#tiers.set(key, tally);
    return new Caller(this.world, {
      id: ++this.#callers,
      policy: this.#make(this.#specOf(name, attemptTimeout), key, 0, tally),
      service: this.#services.get(to)!,
      tally,
      cache: this.#caches.get(to),
      isOwner: !tells.includes('ownership'),
      knowsPatience: tells.includes('patience'),
    });
  }

  #make(spec: PolicySpec, name: string, index: number, tally: CallerTally): Policy {
    const { timeline } = this.world;
    const environment = { clock: timeline, random: this.world.random('policy', name, index) };
    const first = this.#firstOf.get(spec);
    const made = first ? first.with({}, environment) : this.#read(spec, environment);
    if (!first) this.#firstOf.set(spec, made);
    this.#watch.add(tally, made);
    return made;
  }

  #read(spec: PolicySpec, environment: Environment): Policy {
    // Leave the name out: a policy with a name would be registered in this process.
    const { name: _, ...fields } = spec;
    return (this.#options.make ?? policy)(fields, environment);
  }

  /** A policy without an attempt timeout gets `attemptTimeout`, if that is shorter than its total timeout. */
  #specOf(name: string, attemptTimeout: number | undefined): PolicySpec {
    const { policies, policy: tested } = this.#options;
    const wanted = name === underTest ? tested : name;
    const spec = this.#scenario.policies[wanted] ?? policies?.get(wanted);
    if (!spec) throw new TypeError(`${this.#scenario.id} names a policy that is nowhere: ${wanted}.`);
    if (attemptTimeout === undefined || (spec.attemptTimeout ?? 'none') !== 'none') return spec;
    const { patienceMs } = policy({ patience: spec.patience }).plan;
    return attemptTimeout < patienceMs ? { ...spec, attemptTimeout } : spec;
  }
}
