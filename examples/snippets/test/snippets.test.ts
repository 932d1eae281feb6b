import type { Policy } from 'holdfast';
import { type LintFacts, lint } from 'holdfast/lint';
import type { VirtualClock } from 'holdfast/testing';
import { beforeEach, describe, expect, test, vi } from 'vitest';

// The pages show policies as users make them, on the system's clock. Here the same files are run on a virtual one.
const stage = vi.hoisted(() => ({}) as { clock: VirtualClock });
vi.mock('holdfast', async (original) => {
  const holdfast = await original<typeof import('holdfast')>();
  const { seededRandom, virtualClock } = await import('holdfast/testing');
  stage.clock = virtualClock();
  const environment = { clock: stage.clock, random: seededRandom('snippets', 3) };
  return {
    ...holdfast,
    policy: (spec: Parameters<typeof holdfast.policy>[0]) => holdfast.policy(spec, environment),
  };
});

interface Page {
  readonly page: string;
  /** What `lint` finds in the bad call. */
  readonly finds: readonly string[];
  readonly facts?: LintFacts;
}

const pages: readonly Page[] = [
  { page: 'retry', finds: ['unbounded', 'retries-4xx', 'retries-any', 'long-in-process'] },
  { page: 'backoff', finds: ['no-jitter'] },
  { page: 'budget', finds: ['no-budget', 'no-breaker'] },
  { page: 'breaker', finds: ['hasty-breaker', 'fixed-open-time'] },
  { page: 'timeout', finds: ['attempts-exceed-patience'] },
  { page: 'bulkhead', finds: ['queue-too-long'], facts: { typicalMs: 500 } },
  { page: 'limiter', finds: ['large-burst'] },
  { page: 'throttle', finds: ['tight-throttle'] },
  { page: 'hedge', finds: ['unsafe-operation', 'hedge-unsafe', 'hedge-load'], facts: { method: 'POST' } },
  { page: 'choice', finds: [] },
  { page: 'cache', finds: [] },
  { page: 'fallback', finds: [] },
  { page: 'mode', finds: ['observes-only'] },
];

describe.each(pages)('the page about $page', ({ page, finds, facts }) => {
  const policyIn = async (which: string) => {
    const module: Record<string, unknown> = await import(`../src/${page}-${which}.ts`);
    return Object.values(module).find((each): each is Policy => typeof each === 'object')!;
  };

  test('shows a good policy that has no flaw', async () => {
    const { method: _, ...rest } = facts ?? {};
    expect(lint(await policyIn('good'), rest)).toEqual([]);
  });

  test('shows a bad one whose flaws are found, where they can be', async () => {
    expect(lint(await policyIn('bad'), facts).map(({ rule }) => rule)).toEqual(finds);
  });
});

test('the page about lint shows what it finds', async () => {
  const { findings } = await import('../src/lint-a-document.ts');
  expect(findings).toEqual([expect.objectContaining({ rule: 'no-jitter', path: 'backoff.jitter' })]);
});

const down = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** When and with which URL `fetch` was called. */
const calls: { at: number; url: string }[] = [];

/** What `fetch` does from now on: an Error is thrown, undefined never answers. */
function server(answer: (url: string, call: number) => Error | Response | undefined): void {
  vi.stubGlobal('fetch', (url: string, { signal }: { signal?: AbortSignal } = {}) => {
    calls.push({ at: stage.clock.now(), url });
    return new Promise<Response>((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason));
      const given = answer(url, calls.length);
      if (given instanceof Error) reject(given);
      else if (given) resolve(given);
    });
  });
}

/** The end of some work, with time passing as it needs. */
async function endOf<T>(work: Promise<T>): Promise<T | Error> {
  let end: { is: T | Error } | undefined;
  work.then(
    (is) => {
      end = { is };
    },
    (error) => {
      end = { is: error };
    },
  );
  for (let steps = 0; !end && steps < 100_000; steps++) await stage.clock.advance(1);
  return end!.is;
}

beforeEach(() => {
  calls.length = 0;
});

describe('what the pages say of their calls', () => {
  test('retry: a call that fails for a moment gets done', async () => {
    const { product } = await import('../src/retry-good.ts');
    server((_, call) => (call < 3 ? down() : new Response('ok')));
    expect(await endOf(product('1'))).toBeInstanceOf(Response);
    expect(calls).toHaveLength(3);
  });

  test('retry: a mistake in the program is tried again', async () => {
    const { product } = await import('../src/retry-bad.ts');
    server(() => Response.json({ title: 'no name' }));
    expect(await endOf(product('1'))).toBeInstanceOf(TypeError);
    expect(calls.length).toBeGreaterThan(1);
  });

  test('backoff: those who failed together come back apart, or in step', async () => {
    const good = await import('../src/backoff-good.ts');
    const bad = await import('../src/backoff-bad.ts');
    for (const [{ price }, apart] of [[good, 2] as const, [bad, 1] as const]) {
      calls.length = 0;
      server((_, call) => (call <= 2 ? down() : new Response('ok')));
      await Promise.all([endOf(price('a')), endOf(price('b'))]);
      expect(new Set(calls.slice(2).map(({ at }) => at)).size).toBe(apart);
    }
  });

  test('budget: in an outage the load stays, or becomes six times as much', async () => {
    const { inStock, stock } = await import('../src/budget-good.ts');
    const { inStock: storming, storm } = await import('../src/budget-bad.ts');
    server(() => new Response('ok'));
    for (let call = 0; call < 100; call++) await inStock('1');
    server(() => down());
    for (let call = 0; call < 100; call++) await endOf(inStock('1'));
    expect(stock.counters.loadMultiplication).toBeLessThan(1.1);
    await endOf(storming('1'));
    expect(storm.counters.loadMultiplication).toBe(6);
  });

  test('breaker: a dead shard does, or does not, close the door on the others', async () => {
    const good = await import('../src/breaker-good.ts');
    const bad = await import('../src/breaker-bad.ts');
    server((url) => (url.includes('dead') ? down() : new Response('ok')));
    for (let call = 0; call < 5; call++) await endOf(good.find('dead', 'a'));
    expect(await endOf(good.find('dead', 'a'))).toMatchObject({ code: 'HOLDFAST_BREAKER_OPEN' });
    expect(await endOf(good.find('alive', 'a'))).toBeInstanceOf(Response);
    await endOf(bad.find('dead', 'a'));
    expect(await endOf(bad.find('alive', 'a'))).toMatchObject({ code: 'HOLDFAST_BREAKER_OPEN' });
  });

  test('timeout: an attempt that hangs is ended, or uses up the patience', async () => {
    const good = await import('../src/timeout-good.ts');
    const bad = await import('../src/timeout-bad.ts');
    server((_, call) => (call === 1 ? undefined : new Response('ok')));
    expect(await endOf(good.profile('1'))).toBeInstanceOf(Response);
    calls.length = 0;
    server(() => undefined);
    expect(await endOf(bad.profile('1'))).toMatchObject({ code: 'HOLDFAST_PATIENCE_SPENT' });
    expect(calls).toHaveLength(2);
  });

  test('bulkhead: ten at a time, twenty wait, the others are refused at once', async () => {
    const { report, reports } = await import('../src/bulkhead-good.ts');
    server(() => undefined);
    const all = Array.from({ length: 31 }, (_, id) => report(String(id)).catch((error) => error));
    await stage.clock.advance('1ms');
    expect(calls).toHaveLength(10);
    expect(await all[30]).toMatchObject({ code: 'HOLDFAST_BULKHEAD_FULL' });
    await endOf(Promise.all(all));
    expect(reports.counters.operations).toBe(31);
  });

  test('limiter: a burst of ten, or of more than the contract of a minute', async () => {
    const good = await import('../src/limiter-good.ts');
    const bad = await import('../src/limiter-bad.ts');
    server(() => new Response('ok'));
    const atOnce = async (locate: (address: string) => Promise<Response>) => {
      calls.length = 0;
      const all = Array.from({ length: 70 }, () => locate('here').catch(() => {}));
      await stage.clock.advance(0);
      const passed = calls.length;
      await stage.clock.advance('1s');
      await Promise.all(all);
      return passed;
    };
    expect(await atOnce(good.locate)).toBe(10);
    expect(calls).toHaveLength(15);
    expect(await atOnce(bad.locate)).toBe(70);
  });

  test('throttle: some failures are let pass, or each costs a call', async () => {
    const good = await import('../src/throttle-good.ts');
    const bad = await import('../src/throttle-bad.ts');
    const refusedBy = async (find: (words: string) => Promise<Response>) => {
      let refused = 0;
      server(() => new Response('ok'));
      for (let call = 0; call < 100; call++) await endOf(find('a'));
      server((_, call) => (call % 4 ? new Response('ok') : down()));
      for (let call = 0; call < 200; call++) {
        const end = await endOf(find('a'));
        if ((end as { code?: string }).code === 'HOLDFAST_THROTTLED') refused++;
      }
      return refused;
    };
    expect(await refusedBy(good.find)).toBe(0);
    expect(await refusedBy(bad.find)).toBeGreaterThan(0);
  });

  test('hedge: a slow read is overtaken, and a slow payment is made twice', async () => {
    const { avatar, avatars } = await import('../src/hedge-good.ts');
    const { pay } = await import('../src/hedge-bad.ts');
    server(() => new Response('ok'));
    for (let call = 0; call < 200; call++) await avatar('1');
    calls.length = 0;
    server((_, call) => (call === 1 ? undefined : new Response('ok')));
    expect(await endOf(avatar('1'))).toBeInstanceOf(Response);
    expect(avatars.counters.hedges).toBe(1);

    server(() => new Response('ok'));
    for (let call = 0; call < 20; call++) await pay('1');
    calls.length = 0;
    server((_, call) => (call === 1 ? undefined : new Response('ok')));
    await endOf(pay('1'));
    expect(calls).toHaveLength(2);
  });

  test('choice: a retry goes to another replica, or to the dead one again', async () => {
    const good = await import('../src/choice-good.ts');
    const bad = await import('../src/choice-bad.ts');
    server((url) => (url.includes('replica-1') ? down() : new Response('ok')));
    for (let call = 0; call < 20; call++) expect(await endOf(good.read('a'))).toBeInstanceOf(Response);
    calls.length = 0;
    expect(await endOf(bad.read('a'))).toBeInstanceOf(Error);
    expect(new Set(calls.map(({ url }) => url)).size).toBe(1);
  });

  test('cache: a stale rate for a failure, and the orders of somebody else', async () => {
    const { rate } = await import('../src/cache-good.ts');
    const { ordersOf } = await import('../src/cache-bad.ts');
    server(() => new Response('1.08'));
    expect(await endOf(rate('usd'))).toBe(1.08);
    expect(await endOf(rate('usd'))).toBe(1.08);
    expect(calls).toHaveLength(1);
    await stage.clock.advance('5m');
    server(() => down());
    expect(await endOf(rate('usd'))).toBe(1.08);

    server((url) => new Response(url));
    expect(await endOf(ordersOf('ann'))).toContain('ann');
    expect(await endOf(ordersOf('bob'))).toContain('ann');
  });

  test('fallback: the older list, then none; and a payment that was never made', async () => {
    const { suggest } = await import('../src/fallback-good.ts');
    const { pay } = await import('../src/fallback-bad.ts');
    server((url) => (url.includes('last-week') ? Response.json(['tea']) : undefined));
    const startedAt = stage.clock.now();
    expect(await endOf(suggest('1'))).toEqual(['tea']);
    expect(stage.clock.now() - startedAt).toBeLessThanOrEqual(300);
    server(() => down());
    expect(await endOf(suggest('1'))).toEqual([]);

    expect(await endOf(pay('1'))).toEqual({ paid: true });
  });

  test('mode: nothing is tried again while it is only observed', async () => {
    const { invoice } = await import('../src/mode-bad.ts');
    server(() => down());
    expect(await endOf(invoice('1'))).toMatchObject({ code: 'ECONNRESET' });
    expect(calls).toHaveLength(1);
    const { billing, invoice: some } = await import('../src/mode-good.ts');
    calls.length = 0;
    for (let call = 0; call < 100; call++) await endOf(some('1'));
    // The tenth that is protected is spared by the breaker, which the others have taught.
    expect(calls.length).toBeLessThan(100);
    expect(calls.length).toBeGreaterThan(80);
    await stage.clock.advance('1m');
    expect(billing.counters.would.breaker_open).toBeGreaterThan(0);
  });
});
