import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { memoryEngine } from '@holdfast/contracts/memory';
import { policy } from 'holdfast';
import { seededRandom, type VirtualClock } from 'holdfast/testing';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import * as bulkheadBad from '../src/patterns/bulkhead-bad.ts';
import * as bulkheadGood from '../src/patterns/bulkhead-good.ts';
import * as breakerBad from '../src/patterns/circuit-breaker-bad.ts';
import * as breakerGood from '../src/patterns/circuit-breaker-good.ts';
import * as deadLetterBad from '../src/patterns/dead-letter-bad.ts';
import * as deadLetterGood from '../src/patterns/dead-letter-good.ts';
import * as eventBad from '../src/patterns/event-retry-bad.ts';
import * as eventGood from '../src/patterns/event-retry-good.ts';
import * as degradationBad from '../src/patterns/graceful-degradation-bad.ts';
import * as degradationGood from '../src/patterns/graceful-degradation-good.ts';
import * as idempotentBad from '../src/patterns/idempotent-api-bad.ts';
import * as idempotentGood from '../src/patterns/idempotent-api-good.ts';
import * as jitterBad from '../src/patterns/jitter-bad.ts';
import * as jitterGood from '../src/patterns/jitter-good.ts';
import * as assemblyBad from '../src/patterns/packaging-or-assembly-bad.ts';
import * as assemblyGood from '../src/patterns/packaging-or-assembly-good.ts';
import * as rateBad from '../src/patterns/rate-limiting-bad.ts';
import * as rateGood from '../src/patterns/rate-limiting-good.ts';
import * as retryBad from '../src/patterns/retry-with-backoff-bad.ts';
import * as retryGood from '../src/patterns/retry-with-backoff-good.ts';
import * as timeoutsBad from '../src/patterns/timeouts-and-deadlines-bad.ts';
import * as timeoutsGood from '../src/patterns/timeouts-and-deadlines-good.ts';

// The pages show policies as users make them, on the system's clock. Here the same files are run on a virtual one.
const stage = vi.hoisted(() => ({}) as { clock: VirtualClock });
vi.mock('holdfast', async (original) => {
  const holdfast = await original<typeof import('holdfast')>();
  const { seededRandom: seeded, virtualClock } = await import('holdfast/testing');
  stage.clock = virtualClock();
  const environment = { clock: stage.clock, random: seeded('patterns', 3) };
  return {
    ...holdfast,
    policy: (spec: Parameters<typeof holdfast.policy>[0]) => holdfast.policy(spec, environment),
  };
});

const reset = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

interface Seen {
  readonly at: number;
  readonly url: string;
}

/** The calls of `fetch`, with the time since the server was set up. */
const calls: Seen[] = [];

/** What `fetch` does from now on: an Error is thrown, undefined never answers. */
function server(
  answer: (url: string, call: number) => Error | Response | undefined,
  now = () => stage.clock.now(),
): void {
  calls.length = 0;
  const startedAt = now();
  vi.stubGlobal('fetch', (input: string | URL | Request, init: RequestInit = {}) => {
    const url = input instanceof Request ? input.url : String(input);
    calls.push({ at: now() - startedAt, url });
    return new Promise<Response>((resolve, reject) => {
      init.signal?.addEventListener('abort', () => reject(init.signal?.reason));
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
  for (let steps = 0; !end && steps < 10_000; steps++) {
    await stage.clock.advance(1);
    // The bodies of requests are read in later turns of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return end!.is;
}

/** Code that is written by hand waits with `setTimeout`. */
function byHand(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'Date'] });
  onTestFinished(() => void vi.useRealTimers());
}

beforeEach(() => {
  vi.unstubAllGlobals();
});

describe('retry with backoff', () => {
  test('by hand, four attempts are made at once', async () => {
    server(reset);
    await expect(retryBad.product('1')).rejects.toThrow('ECONNRESET');
    expect(calls.map(({ at }) => at)).toEqual([0, 0, 0, 0]);
  });

  test('with a policy, the third attempt succeeds and each has waited', async () => {
    server((_, call) => (call < 3 ? reset() : new Response('ok')));
    expect(await endOf(retryGood.product('1'))).toBeInstanceOf(Response);
    const [first, second, third] = calls.map(({ at }) => at);
    expect([first, calls.length]).toEqual([0, 3]);
    expect(second).toBeGreaterThan(0);
    expect(third).toBeGreaterThan(second!);
    expect(third).toBeLessThanOrEqual(300);
  });
});

describe('jitter', () => {
  /** When each of two sessions tries, for the first five attempts. */
  async function triesOf(
    connect: typeof jitterGood.connect,
    now: () => number,
    pass: () => Promise<unknown>,
  ): Promise<number[][]> {
    const tries: number[][] = [[], []];
    const startedAt = now();
    const connecting = tries.map((its) =>
      connect(async () => {
        its.push(now() - startedAt);
        if (its.length < 5) throw reset();
        return 'connected';
      }),
    );
    await pass();
    expect(await Promise.all(connecting)).toEqual(['connected', 'connected']);
    return tries;
  }

  test('by hand, sessions that were cut off together come back together', async () => {
    byHand();
    const tries = await triesOf(jitterBad.connect, Date.now, () => vi.advanceTimersByTimeAsync(60_000));
    expect(tries).toEqual([
      [0, 500, 1500, 3500, 7500],
      [0, 500, 1500, 3500, 7500],
    ]);
  });

  test('with a policy, they come back apart', async () => {
    const [a, b] = await triesOf(
      jitterGood.connect,
      () => stage.clock.now(),
      () => stage.clock.advance('9m'),
    );
    for (const at of [1, 2, 3, 4]) expect(a![at]).not.toBe(b![at]);
  });
});

describe('timeouts and deadlines', () => {
  test('by hand, a call waits for as long as the server hangs', async () => {
    byHand();
    server(() => undefined);
    const end = vi.fn();
    void timeoutsBad.profile('https://profiles.test/ann').then(end, end);
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(end).not.toHaveBeenCalled();
  });

  test('with a policy it ends after 2 s, and each request says how much time is left', async () => {
    const headers: unknown[] = [];
    const hanging = createServer((request) => headers.push(request.headers.holdfast)).listen(0, '127.0.0.1');
    onTestFinished(() => {
      hanging.closeAllConnections();
      hanging.close();
    });
    await once(hanging, 'listening');
    const end = vi.fn();
    const { port } = hanging.address() as AddressInfo;
    void timeoutsGood.profile(`http://127.0.0.1:${port}/ann`).catch(end);
    await expect.poll(() => headers[0]).toContain('patience=2000');
    await stage.clock.advance('1999ms');
    expect(end).not.toHaveBeenCalled();
    await stage.clock.advance('1ms');
    await expect.poll(() => end.mock.lastCall).toMatchObject([{ code: 'HOLDFAST_PATIENCE_SPENT' }]);
  });

  test('the server refuses a request whose time is over', async () => {
    const ask = (patience: string) =>
      timeoutsGood.serveProfile(
        new Request('https://profiles.test/ann', { headers: { holdfast: `patience=${patience}` } }),
      );
    expect((await ask('0')).status).toBe(504);
    expect(await (await ask('2000')).text()).toBe('Ann');
  });
});

describe('circuit breaker', () => {
  test('without one, each call is sent to a service that is down', async () => {
    server(reset);
    for (let call = 0; call < 50; call++) await endOf(breakerBad.inStock('1'));
    expect(calls.length).toBeGreaterThanOrEqual(50);
  });

  test('with one, calls are refused at once, and only in the region that is down', async () => {
    server((url) => (url.includes('north') ? reset() : new Response('ok')));
    for (let call = 0; call < 10; call++) await endOf(breakerGood.inStock('1', 'north'));
    const sent = calls.length;
    expect(await endOf(breakerGood.inStock('1', 'north'))).toMatchObject({ code: 'HOLDFAST_BREAKER_OPEN' });
    expect(calls).toHaveLength(sent);
    expect(await endOf(breakerGood.inStock('1', 'south'))).toBeInstanceOf(Response);
  });
});

describe('bulkhead', () => {
  const thirty = (reviews: (product: string) => Promise<Response>) =>
    Array.from({ length: 30 }, () => reviews('1').catch((error: unknown) => error));

  test('without one, all calls are in flight', async () => {
    server(() => undefined);
    const all = thirty(bulkheadBad.reviews);
    await stage.clock.advance('1ms');
    expect(calls).toHaveLength(30);
    await endOf(Promise.all(all));
  });

  test('with one, 20 are in flight, 5 wait, and 5 are refused at once', async () => {
    server(() => undefined);
    const all = thirty(bulkheadGood.reviews);
    await stage.clock.advance('1ms');
    expect(calls).toHaveLength(20);
    for (const refused of all.slice(25))
      expect(await refused).toMatchObject({ code: 'HOLDFAST_BULKHEAD_FULL' });
    await endOf(Promise.all(all));
  });
});

describe('rate limiting', () => {
  const tooMany = () => new Response('', { status: 429, headers: { 'retry-after': '1' } });

  test('by hand, a server that says "in a second" is asked 20 times in it', async () => {
    byHand();
    server((_, call) => (call <= 20 ? tooMany() : new Response('ok')), Date.now);
    const locating = rateBad.locate('here');
    await vi.advanceTimersByTimeAsync(1000);
    expect((await locating).status).toBe(200);
    expect(calls.at(-1)).toMatchObject({ at: 1000 });
    expect(calls).toHaveLength(21);
  });

  test('with a limiter, calls are spread before they are sent', async () => {
    server(() => new Response('ok'));
    const all = Array.from({ length: 60 }, () => rateGood.locate('here'));
    await stage.clock.advance(0);
    expect(calls).toHaveLength(10);
    await stage.clock.advance('500ms');
    expect(calls).toHaveLength(60);
    await Promise.all(all);
  });

  test('and what the server says is obeyed', async () => {
    await stage.clock.advance('1m');
    server((_, call) => (call === 1 ? tooMany() : new Response('ok')));
    expect(await endOf(rateGood.locate('here'))).toMatchObject({ status: 200 });
    expect(calls).toHaveLength(2);
    expect(calls[1]!.at).toBeGreaterThanOrEqual(1000);
  });
});

describe('idempotent API', () => {
  /** An API whose first response is lost. */
  function shop() {
    const charges: string[] = [];
    const { clock } = stage;
    const { ledger } = memoryEngine({ clock });
    const api = idempotentGood.paymentsApi(ledger, (order) => charges.push(order), {
      clock,
      random: seededRandom('keys'),
    });
    let requests = 0;
    const losing =
      (serve: (request: Request) => Promise<Response>): typeof fetch =>
      async (input, init) => {
        const response = await serve(new Request(input, init));
        requests++;
        if (requests === 1) throw new TypeError('fetch failed', { cause: reset() });
        return response;
      };
    return { charges, api, losing };
  }

  test('without a key, a lost response charges the card twice', async () => {
    const { charges, losing } = shop();
    const send = losing(async (request) => {
      charges.push(await request.text());
      return new Response('charged', { status: 201 });
    });
    expect((await idempotentBad.pay(send, 'order-1')).status).toBe(201);
    expect(charges).toEqual(['order-1', 'order-1']);
  });

  test('with one, it is charged once, and the customer knows', async () => {
    const { charges, api, losing } = shop();
    const paying = idempotentGood.pay(losing(api), 'order-1', policy({}));
    const response = await endOf(paying);
    expect(response).toMatchObject({ status: 201 });
    expect(charges).toEqual(['order-1']);
    expect((response as Response).headers.get('idempotent-replayed')).toBe('true');
  });
});

/** An engine in memory on the virtual clock, with events of a topic. */
async function engineWith(topic: string, payloads: readonly object[]) {
  const { clock } = stage;
  const engine = memoryEngine({ clock, random: seededRandom('ids') });
  await engine.broker.declare(topic, { ordering: 'none' });
  await engine.broker.publish(
    topic,
    payloads.map((payload, index) => ({ id: `e${index}`, payload: JSON.stringify(payload) })),
  );
  const parked = async () => (await engine.triage.list({ topic }, { limit: 1000 })).items;
  return { engine, parked, options: { engine, clock, random: seededRandom('consumer') } };
}

/** Starts a consumer, and stops it when the test has ended. */
async function started(made: ReturnType<typeof eventGood.chargeOrders>): Promise<void> {
  await made.start();
  onTestFinished(async () => {
    const stopping = made.stop({ grace: 0 });
    await stage.clock.advance('5s');
    await stopping;
  });
}

describe('event retry', () => {
  const orders = Array.from({ length: 30 }, (_, order) => ({ order }));

  test('six attempts do not outlive an outage of two minutes', async () => {
    const { options, parked } = await engineWith('orders', orders);
    await started(eventBad.chargeOrders(() => Promise.reject(reset()), options));
    await stage.clock.advance('2m');
    expect(await parked()).toHaveLength(30);
  });

  test('a consumer that names its dependency parks nothing, and goes on after it', async () => {
    const { options, parked } = await engineWith('orders', orders);
    const payment = policy({ name: 'payment of a test', attempts: 1 });
    let isDown = true;
    let charged = 0;
    const charge = async () => {
      if (isDown) throw reset();
      charged++;
    };
    await started(eventGood.chargeOrders(payment, charge, options));
    await stage.clock.advance('10m');
    expect(charged).toBe(0);
    isDown = false;
    await stage.clock.advance('5m');
    expect([charged, await parked()]).toEqual([30, []]);
  });
});

describe('dead letter', () => {
  test('by hand, a poison event is tried for ever', async () => {
    byHand();
    let tries = 0;
    const end = vi.fn();
    const ship = () => {
      tries++;
      return Promise.reject(new Error('no weight'));
    };
    void deadLetterBad.handle({ weight: 0 }, ship).then(end, end);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(tries).toBe(61);
    expect(end).not.toHaveBeenCalled();
  });

  test('a consumer parks it with the reason, and handles the others', async () => {
    const { options, parked } = await engineWith('parcels', [{ weight: 2 }, { weight: 0 }, { weight: 3 }]);
    const shipped: number[] = [];
    let failures = 2;
    const ship = async (weight: number) => {
      if (weight === 3 && failures-- > 0) throw reset();
      shipped.push(weight);
    };
    await started(deadLetterGood.shipParcels(ship, options));
    await stage.clock.advance('1m');
    expect(shipped.toSorted()).toEqual([2, 3]);
    expect(await parked()).toMatchObject([{ id: 'e1', stop: 'a parcel without a weight' }]);
  });
});

describe('graceful degradation', () => {
  test('by hand, the page fails with its suggestions', async () => {
    server(() => new Response('', { status: 503 }));
    await expect(degradationBad.page('news')).rejects.toThrow('503');
  });

  test('with a fallback the page is shown after 300 ms at most, and with suggestions where there are some', async () => {
    server(() => new Response('tea'));
    expect(await endOf(degradationGood.page('news'))).toBe('news, and then: tea');
    server(() => undefined);
    const startedAt = stage.clock.now();
    expect(await endOf(degradationGood.page('news'))).toBe('news, and then: nothing else today');
    expect(stage.clock.now() - startedAt).toBeLessThanOrEqual(301);
  });
});

describe('packaging or assembly', () => {
  /** A shop whose first parcel cannot be sent. */
  function shop() {
    const acts: string[] = [];
    const did = (act: string) => async (order: string) => void acts.push(`${act} ${order}`);
    let failures = 1;
    const ship = async (order: string) => {
      if (failures-- > 0) throw reset();
      await did('ship')(order);
    };
    return { acts, shop: { charge: did('charge'), reserve: did('reserve'), ship } };
  }

  test('the whole function again charges again', async () => {
    const { acts, shop: its } = shop();
    await endOf(assemblyBad.placeOrder(policy({}), its, 'a'));
    expect(acts).toEqual(['charge a', 'reserve a', 'charge a', 'reserve a', 'ship a']);
  });

  test('an assembly runs only the failed step again', async () => {
    const { assemblies } = await import('@holdfast/assembly');
    const { acts, shop: its } = shop();
    const { clock } = stage;
    const engine = memoryEngine({ clock, random: seededRandom('ids') });
    const program = assemblyGood.placeOrder(its);
    const work = assemblies({ engine, programs: [program], clock, random: seededRandom('worker') });
    await work.run();
    onTestFinished(() => work.stop({ grace: 0 }));
    const order = await work.start(program, 'a', { id: 'a' });
    await expect
      .poll(async () => {
        await clock.advance('1s');
        return (await order.status()).state;
      })
      .toBe('done');
    expect(acts).toEqual(['charge a', 'reserve a', 'ship a']);
  });
});
