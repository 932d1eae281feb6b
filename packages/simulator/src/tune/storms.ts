import { parseScenario, type Scenario } from '@holdfast/config';

/** Builds a scenario with one service and at most one fault. It is small, so many can run in a second. */
function storm(id: string, rate: number, service: string, fault: string, clients = '', title = id): Scenario {
  return parseScenario(`
id: ${id}
title: ${title}
duration: 60s
services: { api: { ${service} } }
clients: { web: { to: api, arrivals: { poisson: ${rate}/s }${clients} } }
faults: [${fault}]
measure: { from: 5s }
`);
}

/** A scenario in which the share `share` of all attempts fails by chance. */
export function failingStorm(share: number, rate = 100): Scenario {
  const service = 'workers: 50, time: { lognormal: { median: 50ms, sigma: 0.6, cap: 5s } }';
  return storm(
    `failing-${share}`,
    rate,
    service,
    '',
    `, failing: ${share}`,
    `${100 * share} % of attempts fail`,
  );
}

/** The scenarios that are used for tuning by default. */
export function tuningStorms(): Scenario[] {
  const busy = 'workers: 20, time: { exponential: 100ms }';
  return [
    storm('stall', 150, busy, '{ kind: stall, service: api, from: 15s, until: 20s }'),
    storm('outage', 100, busy, '{ kind: refuse, service: api, from: 15s, until: 30s }'),
    storm('overload', 260, `${busy}, queue: { max: 60 }`, ''),
    storm(
      'half-speed',
      150,
      busy,
      '{ kind: capacityFactor, value: 0.5, service: api, from: 20s, until: 30s }',
    ),
    storm('lost-messages', 100, busy, '{ kind: loss, value: 0.01, service: api, from: 10s, until: 50s }'),
    storm('errors', 100, busy, '{ kind: errorRate, value: 0.3, service: api, from: 20s, until: 40s }'),
  ];
}

/**
 * Scenarios that are not used in the search. They show whether a tuned policy also handles other faults well.
 */
export function unseenStorms(): Scenario[] {
  const quick = 'workers: 30, time: { lognormal: { median: 80ms, sigma: 0.8, cap: 3s } }';
  return [
    storm('pause', 220, quick, '{ kind: stall, service: api, from: 20s, until: 23s }'),
    storm('flapping', 120, quick, '{ kind: flap, service: api, from: 15s, until: 45s, up: 3s, down: 4s }'),
    storm(
      'brown-out',
      180,
      quick,
      '{ kind: capacityFactor, value: 0.4, service: api, from: 15s, until: 35s }',
    ),
    storm('loss', 100, quick, '{ kind: loss, value: 0.03, service: api, from: 10s, until: 50s }'),
    storm(
      'slow',
      150,
      `${quick}, queue: { max: 100 }`,
      '{ kind: extraLatency, extra: 800ms, service: api, from: 20s, until: 35s }',
    ),
  ];
}
