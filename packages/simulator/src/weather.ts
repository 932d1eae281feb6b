import { type Metric, parseScenario, type Scenario } from '@holdfast/config';
import { median } from './estimates.ts';
import type { RunAnswer, RunRequest } from './run.ts';

/** A test case for an everyday situation. The default policy must do as well as a call without retries. */
export interface WeatherCase {
  readonly id: string;
  readonly title: string;
  readonly scenario: Scenario;
  readonly bounds: readonly WeatherBound[];
  readonly policies: readonly string[];
}

/** A limit that a figure must meet in a test case. */
export interface WeatherBound {
  readonly metric: Metric;
  /** Calls that begin before this time, in ms, are not counted. */
  readonly from?: number;
  readonly until?: number;
  readonly atLeast?: number;
  readonly atMost?: number;
  /** The lower limit is the figure of the policy `bare` with the same seeds. `bare` makes one attempt. */
  readonly likeBare?: true;
}

/**
 * `holdfast` is the default policy. `bare` makes one attempt. `plain4` is a plain loop of up to four
 * attempts.
 */
const weatherPolicies = ['holdfast', 'bare', 'plain4'] as const;

/** The result of one test case: whether all its bounds (limits for figures) are met. */
export interface WeatherVerdict {
  readonly id: string;
  readonly title: string;
  readonly pass: boolean;
  readonly findings: readonly WeatherFinding[];
}

/** One bound (a limit for a figure), with the measured figure of each policy. */
export interface WeatherFinding {
  readonly what: string;
  readonly atLeast: number | null;
  readonly atMost: number | null;
  readonly met: boolean;
  /** The figure of each policy, combined over all seeds; null if there was nothing to measure. */
  readonly figures: Readonly<Record<string, number | null>>;
}

/** Returns the runs that a test case needs: each policy with each seed. */
export function weatherRuns({ scenario, policies }: WeatherCase, seeds: readonly number[]): RunRequest[] {
  return policies.flatMap((policy) =>
    seeds.map((seed): RunRequest => ({ scenario, policy, seed, bounds: scenario.expect })),
  );
}

/** Compares the figures of the finished runs of `weatherRuns` with the bounds (limits). */
export function weatherVerdict(
  { id, title, bounds, policies }: WeatherCase,
  answers: readonly Pick<RunAnswer, 'policy' | 'figures'>[],
): WeatherVerdict {
  const findings = bounds.map((bound, index): WeatherFinding => {
    const over = (policy: string) =>
      combined(
        bound.metric,
        answers.filter((each) => each.policy === policy).map(({ figures }) => figures[index]!),
      );
    const ours = over('holdfast');
    const atLeast = bound.likeBare ? over('bare') : bound.atLeast;
    return {
      what: words(bound),
      atLeast: atLeast ?? null,
      atMost: bound.atMost ?? null,
      met: ours >= (atLeast ?? -Infinity) && ours <= (bound.atMost ?? Infinity),
      figures: Object.fromEntries(policies.map((policy) => [policy, finite(over(policy))])),
    };
  });
  return { id, title, pass: findings.every(({ met }) => met), findings };
}

/**
 * Combines the figures of all seeds. Shares are averaged, because a median would hide one failed seed of
 * five.
 */
function combined(metric: Metric, figures: readonly number[]): number {
  if (metric !== 'success' && metric !== 'finished') return median(figures);
  return figures.reduce((sum, each) => sum + each, 0) / figures.length;
}

function words({ metric, from = 0, until = Infinity, likeBare }: WeatherBound): string {
  const when = [from > 0 ? `from ${from / 1000} s` : '', until < Infinity ? `until ${until / 1000} s` : ''];
  return [metric, ...when, likeBare ? 'as of a bare call' : ''].filter(Boolean).join(' ');
}

function finite(figure: number): number | null {
  return Number.isFinite(figure) ? figure : null;
}

/** All test cases. `share` shortens the simulated time: with 0.1 most cases are ten times shorter. */
export function weatherCases(share = 1): WeatherCase[] {
  return [
    ...constantLatency(share),
    ...oddLatency(share),
    ...independentFailures(share),
    ...smallCallers(share),
    ...lossesAndHangs(share),
    ...changes(share),
    ...outages(share),
    ...overCapacity(share),
  ];
}

const S = 1000;
const M = 60 * S;
const H = 60 * M;

interface Sky {
  readonly id: string;
  readonly title: string;
  readonly duration: number;
  readonly service: object;
  readonly clients: object;
  readonly faults?: readonly object[];
  readonly patience?: string;
  readonly policies?: readonly string[];
  readonly bounds: readonly WeatherBound[];
}

function weather(sky: Sky): WeatherCase {
  const { id, title, duration, service, clients, faults = [], patience, bounds } = sky;
  const { policies = weatherPolicies } = sky;
  const document = {
    id,
    title,
    duration,
    services: { api: service },
    clients: { caller: { to: 'api', ...clients } },
    faults: faults.map((fault) => ({ service: 'api', from: 0, ...fault })),
    policies: {
      holdfast: { patience },
      bare: { patience, attempts: 1, attemptTimeout: 'none', budget: false, breaker: false },
      plain4: { patience, attempts: 4, attemptTimeout: 'none', budget: false, breaker: false },
    },
    compare: policies,
    expect: bounds.map(({ likeBare, ...bound }) => (likeBare ? { ...bound, atLeast: 0 } : bound)),
  };
  return { id, title, bounds, policies, scenario: parseScenario(JSON.stringify(document), id) };
}

const asBare: WeatherBound = { metric: 'success', likeBare: true };

function constantLatency(share: number): WeatherCase[] {
  const rates: [string, number][] = [
    ['1/s', 1000],
    ['20/s', 50],
  ];
  return [500, 2200, 3000, 5000, 8000].flatMap((ms) =>
    rates.map(([rate, gapMs]) => {
      // Before the first call the policy does not know the latency. So the first call to a slow service may
      // fail.
      const second = 100 * Math.ceil((gapMs + 1) / 100);
      const from = ms > 7000 ? second : 0;
      return weather({
        id: `latency ${ms / S} s at ${rate}`,
        title: `a service that always answers after ${ms / S} s`,
        duration: share * 10 * M,
        service: { time: ms },
        clients: { arrivals: { constant: rate } },
        bounds: [
          { ...asBare, from },
          { metric: 'success', from: second, atLeast: 1 },
          { metric: 'multiplication', atMost: 1.1 },
        ],
      });
    }),
  );
}

function oddLatency(share: number): WeatherCase[] {
  // The median is 4 s and the p99 is 30 s. 2.3263 is the p99 of the standard normal distribution.
  const model = { lognormal: { median: 4 * S, sigma: Math.log(30 / 4) / 2.3263 } };
  return [
    ...['0.1/s', '10/s'].map((rate) =>
      weather({
        id: `language model at ${rate}`,
        title: 'answers take 4 s in the median and 30 s at p99; patience is 60 s',
        duration: share * (rate === '10/s' ? 20 * M : 20 * H),
        service: { time: model },
        clients: { arrivals: { poisson: rate } },
        patience: '60s',
        bounds: [asBare],
      }),
    ),
    weather({
      id: 'cold start',
      title: 'a service that starts for 8 s, then answers after 100 ms',
      duration: 5 * M,
      service: { time: 100 },
      clients: { arrivals: { constant: '2/s' } },
      faults: [{ kind: 'stall', until: 8 * S }],
      bounds: [asBare, { metric: 'success', from: 1, atLeast: 1 }],
    }),
    weather({
      id: 'flaky server',
      title: '10 % resets, 10 % 429 with Retry-After, 10 % answers of 3 s; 200 calls at 50/s',
      // At 50 calls/s the 200th call begins at exactly 4 s. The extra 10 ms include it.
      duration: 4 * S + 10,
      service: {
        time: {
          mix: [
            { share: 0.9, constant: 50 },
            { share: 0.1, constant: 3 * S },
          ],
        },
      },
      clients: { arrivals: { constant: '50/s' } },
      faults: [
        { kind: 'errorRate', value: 0.1, gives: 'reset' },
        { kind: 'errorRate', value: 0.1, gives: '429', retryAfter: '1s' },
      ],
      bounds: [asBare, { metric: 'successes', atLeast: 190 }],
    }),
  ];
}

function independentFailures(share: number): WeatherCase[] {
  const rates: [string, number][] = [
    ['0.1/s', 40_000 * S],
    ['1/s', 4000 * S],
    ['10/s', 600 * S],
    ['100/s', 100 * S],
  ];
  return [0.02, 0.05, 0.1, 0.2].flatMap((failing) =>
    rates.map(([rate, duration]) =>
      weather({
        id: `${failing * 100} % failures at ${rate}`,
        title: 'independent resets and 500s',
        duration: Math.max(share, 0.5) * duration,
        service: { time: 20 },
        clients: { arrivals: { poisson: rate } },
        faults: halves(failing),
        bounds: [asBare, { metric: 'success', atLeast: failing <= 0.1 ? 0.995 : 0.95 }],
      }),
    ),
  );
}

/**
 * About half of the failing attempts get a connection reset, the others a 500. The two faults together let
 * the share `failing` of all attempts fail.
 */
function halves(failing: number): object[] {
  const value = 1 - Math.sqrt(1 - failing);
  return [
    { kind: 'errorRate', value, gives: 'reset' },
    { kind: 'errorRate', value, gives: '500' },
  ];
}

function smallCallers(share: number): WeatherCase[] {
  return [
    weather({
      id: 'ten-call scripts',
      title: 'scripts of ten calls that end at the first failure; 30 % failures',
      duration: 5 * M,
      service: { time: 50 },
      clients: {
        count: Math.ceil(share * 2000),
        state: 'each',
        calls: 10,
        quits: true,
        arrivals: { think: 100 },
      },
      faults: halves(0.3),
      bounds: [
        { metric: 'finished', likeBare: true },
        { metric: 'finished', atLeast: 0.75 },
      ],
    }),
    weather({
      id: 'a call a minute',
      title: 'one call a minute, 5 % failures',
      duration: Math.max(share, 0.2) * 60 * H,
      service: { time: 50 },
      clients: { arrivals: { poisson: '1/m' } },
      faults: halves(0.05),
      bounds: [asBare, { metric: 'success', atLeast: 0.995 }],
    }),
  ];
}

function lossesAndHangs(share: number): WeatherCase[] {
  const rates: [string, number][] = [
    ['1/s', 2000 * S],
    ['100/s', 100 * S],
  ];
  const hanging = {
    mix: [
      { share: 0.9, constant: 50 },
      { share: 0.1, constant: H },
    ],
  };
  return [
    ...rates.flatMap(([rate, duration]) => [
      weather({
        id: `5 % of messages lost at ${rate}`,
        title: 'a network that loses messages, each way',
        duration: Math.max(share, 0.25) * duration,
        service: { time: 50 },
        clients: { arrivals: { poisson: rate } },
        faults: [{ kind: 'loss', value: 0.05 }],
        bounds: [asBare, { metric: 'success', atLeast: 0.99 }],
      }),
      weather({
        id: `10 % of calls hang at ${rate}`,
        title: 'calls that are never answered',
        duration: Math.max(share, 0.25) * duration,
        service: { time: hanging },
        clients: { arrivals: { poisson: rate } },
        bounds: [asBare, { metric: 'success', atLeast: 0.97 }],
      }),
    ]),
    weather({
      id: 'black hole',
      title: 'nothing is ever answered: the breaker opens within 15 s, and few calls are sent after that',
      duration: 75 * S,
      service: { time: 50 },
      clients: { arrivals: { constant: '1/s' } },
      faults: [{ kind: 'hang' }],
      bounds: [{ metric: 'attempts', from: 15 * S, until: 75 * S, atMost: 15 }],
    }),
  ];
}

function changes(share: number): WeatherCase[] {
  const hours = Array.from({ length: 24 }, (_, hour) => hour);
  return [
    ...[50, 200, 1000].flatMap((ms) =>
      ['1/s', '50/s'].map((rate) =>
        weather({
          id: `five times slower from ${ms} ms at ${rate}`,
          title: 'a service that gets slower by a factor of 5 for ten minutes, and recovers',
          duration: 30 * M,
          service: { time: ms },
          clients: { arrivals: { poisson: rate } },
          faults: [{ kind: 'capacityFactor', value: 0.2, from: 10 * M, until: 20 * M }],
          bounds: [asBare],
        }),
      ),
    ),
    weather({
      id: 'rolling restart',
      title: 'ten instances restart one after the other, 15 s each',
      duration: 4 * M,
      service: { instances: 10, balance: 'random', time: 50 },
      clients: { arrivals: { poisson: '50/s' } },
      faults: Array.from({ length: 10 }, (_, instance) => ({
        kind: 'refuse',
        instance,
        from: (30 + 15 * instance) * S,
        until: (45 + 15 * instance) * S,
      })),
      bounds: [asBare, { metric: 'success', atLeast: 0.995 }],
    }),
    weather({
      id: 'daily rhythm',
      title: 'a day from 0.1/s at night to 6/s at noon, 2 % failures',
      duration: share * 24 * H,
      service: { time: 50 },
      clients: {
        arrivals: {
          poisson: '0.1/s',
          spikes: hours.map((hour) => ({
            from: Math.round(share * hour * H),
            until: Math.round(share * (hour + 1) * H),
            rate: `${Math.max(0.1, 3 - 3 * Math.cos((hour / 12) * Math.PI)).toFixed(2)}/s`,
          })),
        },
      },
      faults: halves(0.02),
      bounds: [asBare, { metric: 'success', atLeast: 0.995 }],
    }),
  ];
}

/**
 * All calls fail after a long normal period. Clients do not affect each other here, so only a sample of them
 * is simulated.
 */
function outages(share: number): WeatherCase[] {
  const fleets: [clients: number, sample: number, atMost5s: number, atMost60s: number][] = [
    [10, 1, 1.25, 1.05],
    [1000, 10, 1.25, 1.05],
    [10_000, 100, 1.25, 1.05],
    // The figures of this row are only printed. The limit of 4 is loose on purpose.
    [100_000, 1000, 4, 4],
  ];
  return [0.001, 0.01].flatMap((failing) =>
    fleets.map(([clients, sample, atMost5s, atMost60s]) => {
      // A client with a thousand calls/s has collected enough history after ten minutes.
      const outageAt = share * (clients === 10 ? 10 * M : 2 * H);
      return weather({
        id: `outage after ${failing * 100} % for ${clients} clients`,
        title: `10,000 calls/s of ${clients} clients, all of which fail after two hours`,
        duration: outageAt + M,
        service: { time: 20 },
        clients: { count: sample, state: 'each', arrivals: { poisson: `${(10_000 / clients) * sample}/s` } },
        faults: [...halves(failing), { kind: 'refuse', from: outageAt }],
        policies: ['holdfast'],
        bounds: [
          { metric: 'multiplication', from: outageAt, until: outageAt + 5 * S, atMost: atMost5s },
          { metric: 'multiplication', from: outageAt, until: outageAt + M, atMost: atMost60s },
        ],
      });
    }),
  );
}

/** A service with less capacity than load. It rejects the excess calls with a 503 without Retry-After. */
function overCapacity(share: number): WeatherCase[] {
  return [0.95, 0.9, 0.8, 0.5].map((capacity) =>
    weather({
      id: `capacity ${capacity * 100} %`,
      title: `1,000 calls/s of 100 clients on a service for ${capacity * 1000}/s; the rest gets a plain 503`,
      duration: Math.max(share, 0.5) * M,
      policies: ['holdfast'],
      service: { workers: capacity * 100, time: 100, queue: { max: 5 } },
      clients: { count: 100, state: 'each', arrivals: { poisson: '1000/s' } },
      bounds: [{ metric: 'multiplication', from: 20 * S, atMost: 1.12 }],
    }),
  );
}
