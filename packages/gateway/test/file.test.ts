import { readFileSync } from 'node:fs';
import { ConfigError } from '@holdfast/config';
import { type Field, isDocument } from 'holdfast/fields';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { envoyConfiguration } from '../src/envoy/envoy-configuration.ts';
import { protectionFields, upstreamFields } from '../src/file/gateway-file.ts';
import {
  explainGateway,
  type GatewayConfig,
  gatewaySchema,
  lintGateway,
  parseGateway,
} from '../src/index.ts';

function problemsOf(yaml: string, files: Record<string, string> = {}): string[] {
  try {
    parseGateway(yaml, { environment: {}, readFile: reader(files) });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
  return [];
}

function reader(files: Record<string, string>) {
  return (name: string) => {
    const found = Object.entries(files).find(([file]) => name.endsWith(file));
    if (!found) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
    return found[1];
  };
}

const minimal = `
upstreams: { api: { instances: "http://127.0.0.1:1" } }
routes: [{ upstream: api }]`;

describe('blocks', () => {
  test('have the defaults that people know, in the plain form and in that of Kubernetes', () => {
    const blocks = `{ circuitBreaker: {}, rateLimiting: {}, bulkhead: {}, healthCheck: {} }`;
    const plain = parseGateway(`
upstreams: { orders: { instances: ["http://127.0.0.1:1"], circuitBreaker: {}, rateLimiting: {}, bulkhead: {}, healthCheck: {} } }
routes: [{ name: orders, upstream: orders }]`);
    const service = parseGateway(`
apiVersion: v1
kind: Service
metadata: { name: orders }
spec: { instances: ["http://127.0.0.1:1"], resilience: ${blocks} }`);
    expect(service).toEqual(plain);
    expect(plain.upstreams[0]).toMatchObject({
      attempts: { circuitBreaker: { failureThreshold: 10, timeoutMs: 30_000, halfOpenRequests: 3 } },
      protections: {
        rateLimiting: { requestsPerSecond: 1000, burstSize: 2000 },
        bulkhead: { maxConcurrentRequests: 100, maxQueuedRequests: 50 },
      },
      healthCheck: {
        path: '/health',
        intervalMs: 10_000,
        timeoutMs: 3_000,
        unhealthyThreshold: 3,
        healthyThreshold: 2,
      },
    });
  });

  test.each([
    ['{ requestsPerSecond: 5 }', 10],
    ['{ requestsPerSecond: 0.1 }', 1],
    ['{ requestsPerSecond: 5, burstSize: 50 }', 50],
    ['true', 2000],
  ])('of a rate limit let twice as many come at once, unless they say it: %s', (block, burstSize) => {
    const config = parseGateway(minimal.replace('}]', `, rateLimiting: ${block} }]`));
    expect(config.routes[0]!.protections.rateLimiting).toMatchObject({ burstSize });
    expect(explainGateway(config).text).toContain(`${burstSize} at once`);
    expect(JSON.stringify(envoyConfiguration(config, { folder: '', adminPort: 0 }))).toContain(
      `"max_tokens":${burstSize}`,
    );
  });

  test('that are absent, false or not enabled are off', () => {
    for (const block of ['', 'circuitBreaker: false', 'circuitBreaker: { enabled: false, timeout: 1s }']) {
      const { attempts } = parseGateway(`
upstreams:
  api:
    instances: "http://127.0.0.1:1"
    ${block}
routes: [{ upstream: api }]`).upstreams[0]!;
      expect(attempts).toMatchObject({ circuitBreaker: null, hasRetries: false, policy: { breaker: false } });
    }
  });

  test('of the upstream hold for its routes, and a route can have its own', () => {
    const { routes } = parseGateway(`
defaults: { timeouts: { request: 7s } }
upstreams: { api: { instances: "http://127.0.0.1:1", retry: { attempts: 5 }, circuitBreaker: {} } }
routes:
  - { match: /a, upstream: api }
  - { match: /b, upstream: api, retry: false, circuitBreaker: { failureThreshold: 2 } }`);
    expect(routes.map(({ attempts }) => attempts)).toMatchObject([
      { isOwn: false, hasRetries: true, requestTimeoutMs: 7000, circuitBreaker: { failureThreshold: 10 } },
      { isOwn: true, hasOwnBreakers: true, hasRetries: false, circuitBreaker: { failureThreshold: 2 } },
    ]);
  });

  test('of a service of Kubernetes without instances mean its name in the cluster', () => {
    const { upstreams } = parseGateway(`
kind: Service
metadata: { name: orders, namespace: shop }
spec: { ports: [{ port: 8080, targetPort: http }], selector: { app: orders } }`);
    expect(upstreams[0]!.instances).toEqual([{ url: 'http://orders.shop:8080', weight: 1, zone: undefined }]);
  });
});

describe('mistakes', () => {
  test('are told all at once, with line and column and what was meant', () => {
    expect(
      problemsOf(`listen: { port: 99999999 }
upstreams:
  api:
    instances: [http://127.0.0.1:1/path]
    circutBreaker: {}
    bulkhead: { maxConcurentRequests: 5 }
    healthCheck: { interval: soon }
routes:
  - upstream: api
    rateLimiting: { requestsPerSecond: fast }
`),
    ).toEqual([
      expect.stringMatching(/^gateway\.yaml:4:17: upstreams\.api\.instances\[0\]: expected a URL/),
      expect.stringMatching(
        /^gateway\.yaml:5:5: upstreams\.api\.circutBreaker: .*did you mean circuitBreaker\?/,
      ),
      expect.stringMatching(/^gateway\.yaml:6:17: .*did you mean maxConcurrentRequests\?/),
      expect.stringMatching(
        /^gateway\.yaml:7:30: upstreams\.api\.healthCheck\.interval: expected a duration/,
      ),
      expect.stringMatching(
        /^gateway\.yaml:10:40: routes\[0\]\.rateLimiting\.requestsPerSecond: expected a number/,
      ),
    ]);
  });

  test('in a policy are told all at once, under retry and under policies', () => {
    const wrong = '{ attemps: 3, patience: long, backoff: { base: soon } }';
    const told = (at: string) => [
      expect.stringContaining(`${at}.attemps: not an option; did you mean attempts?`),
      expect.stringContaining(`${at}.patience: expected a duration`),
      expect.stringContaining(`${at}.backoff.base: expected a duration`),
    ];
    expect(problemsOf(minimal.replace('}]', `, retry: ${wrong} }]`))).toEqual(told('routes[0].retry'));
    expect(problemsOf(`policies: { mine: ${wrong} }${minimal}`)).toEqual(told('policies.mine'));
  });

  test.each([
    [
      'an upstream that does not exist',
      `${minimal.replace('upstream: api', 'upstream: apj')}`,
      'did you mean api?',
    ],
    ['a policy that does not exist', minimal.replace('" }', '", retry: x }'), 'there is no policy x'],
    [
      'two routes for the same',
      `${minimal.replace('}]', '}, { upstream: api, name: b }]')}`,
      'matches the same',
    ],
    ['no instance', minimal.replace('"http://127.0.0.1:1"', '[]'), 'expected 1 to 1000 instances'],
    [
      'an instance twice',
      minimal.replace('"http://127.0.0.1:1"', '["http://a", "http://a"]'),
      'stands here twice',
    ],
    ['a variable that is not set', minimal.replace('127.0.0.1', '\u0024{HOST}'), 'HOST is not set'],
    ['a fallback to nowhere', minimal.replace('}]', ', fallback: { route: b } }]'), 'there is no route b'],
    [
      'fallbacks in a circle',
      `${minimal.replace('[{', '[{ name: a, fallback: { route: a },')}`,
      'lead back to this route',
    ],
    [
      'a policy part that a gateway cannot run',
      minimal.replace('" }', '", retry: { cache: true } }'),
      'does not run',
    ],
    ['no proxy address', `listen: { trustedProxies: [everyone] }${minimal}`, 'an address or a network'],
    [
      'a key without a scope',
      minimal.replace('}]', ', idempotency: {} }]'),
      'idempotency.scope: expected public or client or header:<name>, got nothing',
    ],
    [
      'a ceiling below the floor',
      minimal.replace('}]', ', shedding: { floor: 30, ceiling: 10 } }]'),
      'routes[0].shedding.ceiling: expected at least the floor of 30, got 10',
    ],
    [
      'keys that are only switched on',
      minimal.replace('}]', ', idempotency: true }]'),
      'routes[0].idempotency: expected a block such as { scope: … }, with scope public or client or header:<name>, got true',
    ],
    ['a file that is not there', `include: [more.yaml]${minimal}`, 'there is no such file'],
    [
      'a certificate that is not there',
      `listen: { tls: { cert: c, key: k } }${minimal}`,
      'there is no such file',
    ],
    [
      'an attempt longer than the request',
      minimal.replace('" }', '", timeouts: { request: 1s, attempt: 2s } }'),
      'attemptTimeout',
    ],
  ])('such as %s are refused', (_what, yaml, message) => {
    expect(problemsOf(yaml).join('\n')).toContain(message);
  });

  test('in an included file have the place in that file', () => {
    const files = { 'more.yaml': 'upstreams:\n  other: { instances: [nowhere] }\n' };
    expect(problemsOf(`include: [more.yaml]${minimal}`, files)).toEqual([
      expect.stringMatching(/^more\.yaml:2:24: upstreams\.other\.instances\[0\]/),
    ]);
  });
});

describe('a file', () => {
  test('includes others, of either form', () => {
    const config = parseGateway(`include: [a.yaml, b.yaml]${minimal}`, {
      readFile: reader({
        'a.yaml':
          'upstreams: { a: { instances: "http://127.0.0.1:2" } }\nroutes: [{ match: /a, upstream: a }]',
        'b.yaml':
          'kind: Service\nmetadata: { name: b }\nspec: { ports: [{ port: 80 }], routes: [{ match: /b }] }',
      }),
    });
    expect(config.routes.map(({ name, upstream }) => [name, upstream])).toEqual([
      ['/*', 'api'],
      ['/a/*', 'a'],
      ['b', 'b'],
    ]);
    expect(config.files).toEqual(['gateway.yaml', 'a.yaml', 'b.yaml']);
  });

  test('takes policies from the file that services read', () => {
    const yaml = `policyFile: policies.yaml${minimal.replace('" }', '", retry: patient }')}`;
    const files = { 'policies.yaml': 'policies: { patient: { attempts: 7, patience: 20s } }' };
    const { attempts } = parseGateway(yaml, { readFile: reader(files) }).routes[0]!;
    expect(attempts).toMatchObject({ hasRetries: true, requestTimeoutMs: 20_000, policy: { attempts: 7 } });
  });

  test('takes variables from the environment, as text, number or truth', () => {
    const yaml = `listen: { host: "\${HOST}", port: "\${PORT:-8443}" }\nserverTiming: "\${TIMING}"${minimal}`;
    const config = parseGateway(yaml, { environment: { HOST: '127.0.0.9', TIMING: 'true' } });
    expect(config).toMatchObject({ listen: { host: '127.0.0.9', port: 8443 }, serverTiming: true });
  });

  test('can have variables that would mean something in YAML, and they do not', () => {
    const yaml = `admin: { token: "\${TOKEN}" }${minimal}`;
    const { admin } = parseGateway(yaml, { environment: { TOKEN: 'a: [b]\nroutes: []' } });
    expect(admin!.token).toBe('a: [b]\nroutes: []');
  });

  test('has a README with each field of a block, and its default', () => {
    const page = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    const { retry, hedge, ...protections } = protectionFields;
    const { healthCheck, outlierEjection } = upstreamFields;
    const blocks: Record<string, Field> = { ...protections, healthCheck, outlierEjection };
    const missing = Object.entries(blocks).flatMap(([name, { fields }]) => {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\` |`)) ?? '';
      return Object.entries(fields!)
        .filter(([field]) => field !== 'enabled')
        .map(([field, { default: given }]) => {
          const hasDefault = given !== undefined && field !== 'scope';
          return `\`${field}\`${hasDefault ? ` ${[given].flat().join(', ')}` : ''}`;
        })
        .filter((text) => !row.includes(text))
        .map((text) => `${name}: ${text}`);
    });
    expect(missing).toEqual([]);
  });

  test('has a JSON Schema', () => {
    const schema = JSON.stringify(gatewaySchema());
    for (const word of [
      'circuitBreaker',
      'failureThreshold',
      'apiVersion',
      'maxQueuedRequests',
      '#/$defs/policy',
    ])
      expect(schema).toContain(word);
  });
});

describe('an explanation', () => {
  const explained = (config: GatewayConfig) => explainGateway(config);

  test('says what each route does, how long and how much at worst, and what is worth a look', () => {
    const { text, routes, findings } = explained(
      parseGateway(`
upstreams:
  orders:
    instances: ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    circuitBreaker: {}
    retry: { attempts: 3, patience: 5s }
routes:
  - match: { path: /orders, methods: [GET, POST] }
    upstream: orders
    rateLimiting: {}
    idempotency: { scope: public }`),
    );
    expect(text).toContain('Route GET,POST /orders/*: GET, POST on every host, /orders and below → orders');
    expect(text).toContain('1000 a second, 2000 at once');
    expect(text).toContain('a request without a key passes through unprotected');
    expect(text).toContain('opens after 10 failures in a row');
    expect(routes[0]!.time.hangingMs).toBe(5000);
    expect(routes[0]!.load.calls).toBe(3);
    expect(findings.map(({ rule }) => rule)).toEqual(
      expect.arrayContaining(['public-keys', 'keys-in-memory', 'no-health-check']),
    );
  });

  test('finds what is dangerous', () => {
    const { findings } = explained(
      parseGateway(`
admin: { host: 0.0.0.0 }
workers: 4
upstreams: { api: { instances: "https://127.0.0.1:1", tls: { insecureSkipVerify: true }, timeouts: { request: unlimited } } }
routes: [{ upstream: api, idempotency: { scope: client }, rateLimiting: {} }]`),
    );
    expect(findings.map(({ rule, severity }) => `${severity} ${rule}`)).toEqual(
      expect.arrayContaining([
        'error open-admin',
        'warning unverified-tls',
        'error keys-not-shared',
        'warning no-timeout',
        'advice divided-limit',
      ]),
    );
  });

  const kubernetes = /```yaml\n(apiVersion[\s\S]*?)```/.exec(
    readFileSync(new URL('../README.md', import.meta.url), 'utf8'),
  )![1]!;
  const two = (upstream: string, more = '') => `
upstreams:
  api:
    instances: ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    ${upstream}
routes: [{ upstream: api }]
${more}`;

  test.each([
    ['the service of the README', kubernetes],
    ['a slow breaker', two('circuitBreaker: { failureThreshold: 1 }')],
    ['no limit in time', two('timeouts: { request: unlimited }\n    retry: { attempts: 50 }')],
    ['one attempt without a limit', two('timeouts: { request: unlimited }')],
    ['minutes of patience', two('retry: { patience: 20m, attempts: 3 }')],
    ['attempts that wait for nothing', two('retry: { backoff: false, respectServer: false }')],
    ['no jitter', two('retry: { backoff: { jitter: none } }')],
    ['long waits', two('retry: { attempts: 12, patience: 5m, backoff: { cap: 1h } }')],
    ['a large budget', two('retry: { budget: { ratio: 0.9 }, retryOn: any }')],
    ['no budget', two('retry: { budget: false, attempts: unlimited, patience: 10s }')],
    ['limits of a policy', two('retry: { throttle: { k: 1 }, limiter: { rate: 100/m } }')],
    ['hedges', two('retry: { attempts: 1 }\n    hedge: { extraLoad: 0.4 }')],
    ['a breaker of a policy', two('retry: { breaker: { openFor: 10s, consecutive: 1 } }')],
    [
      'a breaker that is waited for',
      two('retry: { patience: 1s, breaker: { whenOpen: wait, openFor: [5s, 30s] } }'),
    ],
  ])('gives advice that the file takes: %s', (_, yaml) => {
    const advised = lintGateway(parseGateway(yaml)).filter(({ fix }) => fix.includes('`'));
    expect(advised.length).toBeGreaterThan(0);
    for (const { rule, where, fix } of advised) {
      expect(where).not.toMatch(/attemptTimeout|patience|breaker\.slow/);
      for (const [, block] of fix.matchAll(/`([^`]*: [^`]*)`/g)) {
        const data = parse(yaml) as Spec;
        const part = data.spec ? data.spec.resilience : data.upstreams!.api!;
        merge(part, parse(block!) as Fields);
        const config = parseGateway(JSON.stringify(data));
        const left = lintGateway(config).filter((each) => each.rule === rule && each.where === where);
        expect([block, left]).toEqual([block, []]);
      }
    }
  });

  test('asks about small durations without a unit, and not about others', () => {
    const found = (yaml: string) =>
      lintGateway(parseGateway(yaml, { file: 'g.yaml', environment: { WAIT: '30' } }))
        .filter(({ rule }) => rule === 'bare-duration')
        .map(({ severity, where, found: what, fix }) => [severity, where, what, fix]);
    expect(found(two('circuitBreaker: { timeout: 30 }'))).toEqual([
      [
        'warning',
        'g.yaml:5:32, upstreams.api.circuitBreaker.timeout',
        'a number without a unit is in milliseconds, so 30 means 30 ms',
        'write `30s` or `30ms`',
      ],
    ]);
    expect(found(two(`timeouts: { request: "\${WAIT}" }`, 'shutdown: { drain: 5 }'))).toHaveLength(2);
    expect(found(kubernetes.replace('timeout: 30s', 'timeout: 30'))[0]![1]).toBe(
      'g.yaml:7:69, spec.resilience.circuitBreaker.timeout',
    );
    for (const fine of ['timeout: 30ms', 'timeout: 100', 'failureThreshold: 30'])
      expect(found(two(`circuitBreaker: { ${fine} }`))).toEqual([]);
    expect(found(two('shedding: { queueTimeout: 50 }\n    slowStart: 0'))).toEqual([]);
  });
});

type Fields = Record<string, unknown>;

interface Spec {
  readonly upstreams?: Record<string, Fields>;
  readonly spec?: { readonly resilience: Fields };
}

/** Adds the fields of `block` to those of `into`, as a person edits a file. */
function merge(into: Fields, block: Fields): void {
  for (const [key, value] of Object.entries(block)) {
    const before = into[key];
    if (isDocument(before) && isDocument(value)) merge(before as Fields, value as Fields);
    else into[key] = value;
  }
}
