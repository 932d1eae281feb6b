import type { Bound, FaultSettings, Scenario } from './scenario.ts';

/**
 * A conflict between fields of a scenario, for example a client that calls an unknown service. `path` is one
 * of these fields.
 */
export interface BrokenRule {
  readonly path: string;
  /** One sentence: what was expected and what was found. */
  readonly message: string;
}

/** Returns all conflicts between fields of a scenario. Each single field must already be valid. */
export function brokenRules(scenario: Scenario): BrokenRule[] {
  return [
    ...fewRules(scenario),
    ...Object.entries(scenario.clients).flatMap(([name, its]) => [...clientRules(scenario, name, its)]),
    ...Object.keys(scenario.services).flatMap((name) => [...serviceRules(scenario, name)]),
    ...scenario.faults.flatMap((fault, index) => [...faultRules(scenario, `faults[${index}]`, fault)]),
    ...[...boundRules(scenario, 'expect'), ...boundRules(scenario, 'damage')],
  ];
}

/**
 * Returns an error message if a bound (a limit for a measured figure) names clients, a service or an instance
 * that does not exist.
 */
export function missingPartIn(
  { clients, services }: Pick<Scenario, 'clients' | 'services'>,
  { clients: whose, service, instance = 0 }: Pick<Bound, 'clients' | 'service' | 'instance'>,
): string | undefined {
  const known = [...Object.keys(clients), ...tiersOf(services)];
  if (whose !== undefined && !known.includes(whose))
    return `there are no clients "${whose}": there are ${known.join(', ')}`;
  if (service === undefined) return undefined;
  if (!Object.hasOwn(services, service)) return noService(services, service);
  return tooFar(services, service, instance);
}

function* fewRules({ clients, services, seeds }: Scenario): Generator<BrokenRule> {
  for (const [path, things] of Object.entries({ services, clients, seeds })) {
    if (Object.keys(things).length === 0) yield { path, message: 'expected at least one, got none' };
  }
}

function* clientRules(
  { services }: Scenario,
  name: string,
  { to, route, arrivals, calls }: Scenario['clients'][string],
): Generator<BrokenRule> {
  const path = `clients.${name}`;
  const service = serviceOf(services, to);
  if (!service) yield { path: `${path}.to`, message: noService(services, to) };
  else if (route !== undefined && !Object.hasOwn(service.routes, route)) {
    yield { path: `${path}.route`, message: `${to} has no route "${route}"` };
  }
  const { poisson, constant, think, burst, at, spikes } = arrivals;
  if ([poisson, constant, think, burst, at].filter((kind) => kind !== undefined).length !== 1) {
    yield { path: `${path}.arrivals`, message: 'say one of poisson, constant, think, burst and at' };
  } else if (spikes.length > 0 && poisson === undefined && constant === undefined) {
    yield { path: `${path}.arrivals.spikes`, message: 'change a rate: say poisson or constant beside them' };
  }
  if (calls < Infinity && think === undefined)
    yield {
      path: `${path}.calls`,
      message: 'are counted of clients that think: say arrivals.think beside it',
    };
  const { from, until = Infinity } = arrivals;
  yield* forward(`${path}.arrivals`, { from, until });
  for (const [index, spike] of spikes.entries()) yield* forward(`${path}.arrivals.spikes[${index}]`, spike);
}

function* serviceRules({ services }: Scenario, name: string): Generator<BrokenRule> {
  const { calls, routes } = services[name]!;
  const all = Object.entries(routes).map(([key, route]) => [`routes.${key}.calls`, route.calls] as const);
  for (const [key, its] of [['calls', calls] as const, ...all]) {
    for (const [index, { to }] of its.entries()) {
      const path = `services.${name}.${key}[${index}].to`;
      if (!Object.hasOwn(services, to)) yield { path, message: noService(services, to) };
    }
  }
  const ring = circle(services, name);
  if (ring) yield { path: `services.${name}.calls`, message: `calls itself: ${ring.join(' → ')}` };
}

function* faultRules({ services }: Scenario, path: string, fault: FaultSettings): Generator<BrokenRule> {
  const { kind, service: name, instance, value, up, down } = fault;
  const service = serviceOf(services, name);
  if (!service) yield { path: `${path}.service`, message: noService(services, name) };
  else {
    const far = tooFar(services, name, instance ?? 0);
    if (far) yield { path: `${path}.instance`, message: far };
    if (kind === 'flush' && !service.cache)
      yield { path: `${path}.service`, message: `there is nothing to flush: ${name} has no cache` };
  }
  yield* forward(path, fault);
  const isShare = kind === 'errorRate' || kind === 'loss';
  if (isShare && value > 1)
    yield { path: `${path}.value`, message: `expected a share from 0 to 1, got ${value}` };
  if (kind === 'capacityFactor' && value === 0)
    yield { path: `${path}.value`, message: 'expected a number above 0, got 0: to stand still is a stall' };
  if (kind === 'flap' && up + down === 0)
    yield { path: `${path}.up`, message: 'expected a time above 0 ms, of up or of down, got 0 ms' };
}

function* boundRules(scenario: Scenario, list: 'expect' | 'damage'): Generator<BrokenRule> {
  for (const [index, bound] of scenario[list].entries()) {
    const message = missingPartIn(scenario, bound);
    if (message) yield { path: `${list}[${index}]`, message };
    const { atLeast, atMost, instance, service } = bound;
    if (atLeast === undefined && atMost === undefined)
      yield { path: `${list}[${index}]`, message: 'say atLeast or atMost: without them it bounds nothing' };
    if (instance !== undefined && service === undefined)
      yield { path: `${list}[${index}].instance`, message: 'say the service that it is an instance of' };
    yield* forward(`${list}[${index}]`, bound);
  }
}

function* forward(path: string, { from, until }: { from: number; until: number }): Generator<BrokenRule> {
  if (until < from)
    yield { path: `${path}.until`, message: `expected at least its from of ${from} ms, got ${until} ms` };
}

/**
 * Returns the service with this name. It ignores inherited properties, so that a name such as `toString`
 * finds nothing.
 */
function serviceOf(services: Scenario['services'], name: string): Scenario['services'][string] | undefined {
  return Object.hasOwn(services, name) ? services[name] : undefined;
}

function noService(services: Scenario['services'], name: string): string {
  return `there is no service "${name}": there are ${Object.keys(services).join(', ')}`;
}

function tooFar(services: Scenario['services'], name: string, instance: number): string | undefined {
  const { instances } = services[name]!;
  if (instance < instances) return undefined;
  return `there is no instance ${instance} of ${name}: they are counted from 0, and there ${instances === 1 ? 'is 1' : `are ${instances}`}`;
}

/**
 * Returns the names of all calls between services, such as `api → db`, or `api.search → db` for a route. A
 * bound (a limit for a figure) can use such a name in its field `clients`.
 */
function tiersOf(services: Scenario['services']): string[] {
  return Object.entries(services).flatMap(([name, { calls, routes }]) => [
    ...calls.map(({ to }) => `${name} → ${to}`),
    ...Object.entries(routes).flatMap(([key, its]) => its.calls.map(({ to }) => `${name}.${key} → ${to}`)),
  ]);
}

/** Returns the chain of calls from a service back to itself; undefined if there is none. */
function circle(
  services: Scenario['services'],
  start: string,
  way: readonly string[] = [start],
): string[] | undefined {
  const at = services[way.at(-1) as string];
  const next = [at?.calls ?? [], ...Object.values(at?.routes ?? {}).map(({ calls }) => calls)].flat();
  for (const { to } of next) {
    if (to === start) return [...way, to];
    if (way.includes(to)) continue;
    const found = circle(services, start, [...way, to]);
    if (found) return found;
  }
  return undefined;
}
