import { parseList } from 'structured-headers';
import { describe, expect, test } from 'vitest';
import { type LimitSpec, rateLimit } from '../src/index.ts';
import { frameworks, plain, reply } from './frameworks.ts';

const hello = () => reply(200, 'hello');

describe.each(frameworks)('a limit on $name', ({ serve }) => {
  test('lets the burst pass, sends how many are left, then refuses', async () => {
    await using server = await serve([rateLimit({ limits: { rate: '2/m' } })], hello);
    const answers = [];
    for (let time = 0; time < 3; time++) answers.push(await fetch(server.origin));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(answers.map(({ headers }) => headers.get('ratelimit'))).toEqual([
      '"default";r=1;t=30',
      '"default";r=0;t=30',
      '"default";r=0;t=30',
    ]);
    for (const { headers } of answers) expect(headers.get('ratelimit-policy')).toBe('"default";q=2;w=60');
    const refused = answers[2]!;
    expect(refused.headers.get('content-type')).toContain('application/problem+json');
    expect(refused.headers.get('holdfast')).toBe('retry=safe');
    expect(await refused.json()).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'The quota is used up.',
      status: 429,
      'violated-policies': ['default'],
    });
  });

  test('only reports where it is told to', async () => {
    const limit = rateLimit({ limits: { rate: '1/m' }, reportOnly: true });
    await using server = await serve([limit], hello);
    for (let time = 0; time < 3; time++) {
      const { status, headers } = await fetch(server.origin);
      expect([status, headers.get('ratelimit')]).toEqual([200, null]);
    }
    expect(limit.counts).toEqual({ allowed: 1, refused: 0, wouldRefuse: 2 });
  });

  test('counts each request once, far from the limit, near it and at it', async () => {
    const limit = rateLimit({ limits: { rate: '11/h' } });
    await using server = await serve([limit], hello);
    const answers = [];
    for (let time = 0; time < 13; time++) answers.push(await fetch(server.origin));
    const told = answers.map(({ headers }) => /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);
    expect(told).toEqual([...new Array(5).fill(undefined), '5', '4', '3', '2', '1', '0', '0', '0']);
    expect(limit.counts).toEqual({ allowed: 11, refused: 2, wouldRefuse: 0 });
  });

  test('gives handlers a context, whose signal tells that the client has gone', async () => {
    const gone = Promise.withResolvers<unknown>();
    await using server = await serve([rateLimit()], async ({ context }) => {
      const { signal, priority, patienceLeft } = context;
      expect([priority, patienceLeft]).toEqual(['default', Infinity]);
      signal.addEventListener('abort', () => gone.resolve(signal.reason));
      await gone.promise;
      return reply(200, 'late');
    });
    const leaving = new AbortController();
    const answer = fetch(server.origin, { signal: leaving.signal });
    setTimeout(() => leaving.abort(), 50);
    await expect(answer).rejects.toThrow();
    expect(await gone.promise).toMatchObject({ code: 'HOLDFAST_CLIENT_GONE' });
  });
});

test.each<[limit: LimitSpec, told: string]>([
  [{ rate: '100/s', burst: 10 }, 'q=100;w=1'],
  [{ rate: '100/m', burst: 10 }, 'q=10;w=6'],
  [{ rate: '100/m' }, 'q=100;w=60'],
  [{ rate: '3/s', burst: 10 }, 'q=12;w=4'],
  [{ rate: '50/s', burst: 200 }, 'q=200;w=4'],
  [{ rate: '0.5/s', burst: 1 }, 'q=1;w=2'],
  [{ rate: '1000/h', burst: 7 }, 'q=7;w=26'],
])('of %j the policy field is %s: the quota and the window make the rate', async (limits, told) => {
  await using server = await plain.serve([rateLimit({ limits, fields: 'always' })], hello);
  const { headers } = await fetch(server.origin);
  expect(headers.get('ratelimit-policy')).toBe(`"default";${told}`);
});

test('the fields are what the draft says they are', async () => {
  const limits = [
    { name: 'burst', rate: '10/s' as const },
    { name: 'daily', rate: '1000/h' as const },
  ];
  await using server = await plain.serve([rateLimit({ limits, fields: 'always' })], hello);
  const { headers } = await fetch(server.origin);
  const told = (name: string) =>
    parseList(headers.get(name)!).map(([item, parameters]) => [item, Object.fromEntries(parameters)]);
  expect(told('ratelimit-policy')).toEqual([
    ['burst', { q: 10, w: 1 }],
    ['daily', { q: 1000, w: 3600 }],
  ]);
  expect(told('ratelimit')).toEqual([
    ['burst', { r: 9, t: 1 }],
    ['daily', { r: 999, t: 4 }],
  ]);
});
