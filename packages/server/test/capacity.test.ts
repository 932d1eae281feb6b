import net from 'node:net';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { bulkhead, deadline, type Part, peers, shed } from '../src/index.ts';
import { Pressure } from '../src/overload/pressure.ts';
import { TenantLevels } from '../src/overload/tenant-levels.ts';
import { WebExchange } from '../src/web.ts';
import { frameworks, plain, reply } from './frameworks.ts';

const inside = peers('127.0.0.1');
/** Whatever else the machine does. */
const calm = { readings: { utilization: () => 0, heap: () => 0 } };

/** Requests that wait in the handler until they are let go. */
async function crowd(parts: readonly Part[], serve = plain.serve) {
  const inHandler: { url: string; finish: () => void }[] = [];
  const server = await serve(parts, ({ url }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    inHandler.push({ url, finish: resolve });
    return promise.then(() => reply(200, url));
  });
  const send = (name: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
    fetch(`${server.origin}/${name}`, { headers, ...init });
  return { server, inHandler, send, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

describe.each(frameworks)('a bulkhead on $name', ({ serve }) => {
  test('admits `concurrent`, queues `queueMax`, and refuses the rest with Retry-After', async () => {
    const part = bulkhead({ concurrent: 1, queueMax: 1, queueTimeout: '10s' });
    await using it = await crowd([part], serve);
    const first = it.send('first');
    await expect.poll(() => part.inFlight).toBe(1);
    const second = it.send('second');
    await expect.poll(() => part.queued).toBe(1);
    const third = await it.send('third');
    expect(third.status).toBe(503);
    expect(third.headers.get('holdfast')).toBe('retry=safe');
    expect(['1', '2', '3']).toContain(third.headers.get('retry-after'));
    expect(await third.json()).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
    });
    it.inHandler[0]!.finish();
    expect(await (await first).text()).toBe('/first');
    await expect.poll(() => it.inHandler.length).toBe(2);
    it.inHandler[1]!.finish();
    expect(await (await second).text()).toBe('/second');
    await expect.poll(() => [part.inFlight, part.queued, part.refused]).toEqual([0, 0, 1]);
  });

  test('removes requests whose client has disconnected, or whose patience is over', async () => {
    const part = bulkhead({ concurrent: 1, queueMax: 2, queueTimeout: '10s' });
    await using it = await crowd([deadline(), part], serve);
    const first = it.send('first');
    await expect.poll(() => part.inFlight).toBe(1);
    const left = new AbortController();
    const gone = it.send('gone', {}, { signal: left.signal });
    const impatient = it.send('impatient', { holdfast: 'patience=50' });
    await expect.poll(() => part.queued).toBe(2);
    left.abort();
    await expect(gone).rejects.toThrow();
    expect([503, 504]).toContain((await impatient).status);
    await expect.poll(() => part.queued).toBe(0);
    it.inHandler[0]!.finish();
    await first;
    expect(it.inHandler.map(({ url }) => url)).toEqual(['/first']);
  });
});

describe.each(frameworks)('shedding on $name', ({ serve }) => {
  test('keeps a reserve for the critical, and sheds the least important first', async () => {
    const part = shed({ initial: 4, floor: 4, ceiling: 4, reserve: 0.25, queueMax: 0, inside }, calm);
    await using it = await crowd([part], serve);
    const running = [1, 2, 3, 4].map((number) => it.send(`default-${number}`));
    await expect.poll(() => part.inFlight).toBe(4);
    expect((await it.send('sheddable', { holdfast: 'priority=sheddable' })).status).toBe(503);
    const critical = it.send('critical', { holdfast: 'priority=critical' });
    await expect.poll(() => part.inFlight).toBe(5);
    expect((await it.send('critical-2', { holdfast: 'priority=critical' })).status).toBe(503);
    for (const { finish } of it.inHandler) finish();
    for (const each of [...running, critical]) expect((await each).status).toBe(200);
    expect(part.refused).toEqual({ critical: 1, default: 0, sheddable: 1 });
    await expect.poll(() => part.inFlight).toBe(0);
  });

  test('decides all requests of one turn of the event loop together, the most important first', async () => {
    const part = shed({ initial: 1, floor: 1, ceiling: 1, reserve: 0, queueMax: 0, inside }, calm);
    await using server = await serve([part], ({ url }) => reply(200, url));
    const request = (path: string, priority: string) =>
      `GET ${path} HTTP/1.1\r\nhost: a\r\nholdfast: priority=${priority}\r\n\r\n`;
    const socket = net.connect(server.port, '127.0.0.1');
    let heard = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      heard += chunk;
    });
    // In one packet, so that both are there before anything is decided.
    socket.write(request('/less', 'sheddable') + request('/more', 'critical'));
    await expect.poll(() => heard.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 503', 'HTTP/1.1 200']);
    socket.destroy();
  });

  test('lets critical requests overtake those in the queue', async () => {
    const part = shed(
      { initial: 1, floor: 1, ceiling: 1, reserve: 0, queueMax: 2, queueTimeout: '10s', inside },
      calm,
    );
    await using it = await crowd([part], serve);
    const first = it.send('first');
    await expect.poll(() => part.inFlight).toBe(1);
    const usual = it.send('usual');
    await expect.poll(() => part.queued).toBe(1);
    const critical = it.send('critical', { holdfast: 'priority=critical' });
    await expect.poll(() => part.queued).toBe(2);
    it.inHandler[0]!.finish();
    await expect.poll(() => it.inHandler[1]?.url).toBe('/critical');
    it.inHandler[1]!.finish();
    // It may have been dropped meanwhile, for having waited: then it has not been in the handler.
    await critical;
    it.inHandler[2]?.finish();
    await Promise.all([first, usual]);
  });
});

describe.each(frameworks)('a function that throws while it is asked who is shed on $name', ({ serve }) => {
  test('fails its own request, and no other', async () => {
    const tenant = ({ url }: { url: string }) => {
      if (url === '/odd') throw new Error('no such tenant');
      return url;
    };
    const part = shed({ initial: 1, floor: 1, ceiling: 1, reserve: 0, queueMax: 0, tenant }, calm);
    await using it = await crowd([part], serve);
    const first = it.send('first');
    await expect.poll(() => it.inHandler.length).toBe(1);
    const others = ['odd', 'second', 'odd'].map((name) => it.send(name));
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([500, 503, 500]);
    it.inHandler[0]!.finish();
    expect((await first).status).toBe(200);
  });
});

test('requests that their clients cancel are no answers: they do not move the limit', async () => {
  const clock = virtualClock();
  const part = shed({ initial: 20, queueMax: 0 }, { clock, ...calm });
  const begin = (count: number) =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const client = new AbortController();
        const exchange = new WebExchange(new Request('http://a/', { signal: client.signal }), {}, clock);
        expect(await part.enter(exchange)).toBe(undefined);
        return { answer: () => exchange.finish(new Response()), cancel: () => client.abort() };
      }),
    );
  // Each round takes 500 ms: 5 requests are answered after 10 ms and, from the 21st on, 10 more hang until they are cancelled.
  for (let round = 1; round <= 40; round++) {
    const answered = await begin(5);
    const cancelled = await begin(round > 20 ? 10 : 0);
    await clock.advance(10);
    for (const each of answered) each.answer();
    await clock.advance(490);
    for (const each of cancelled) each.cancel();
    expect({ round, limit: part.limit, inFlight: part.inFlight }).toEqual({ round, limit: 20, inFlight: 0 });
  }
});

describe('who is shed', () => {
  function setup() {
    const clock = virtualClock();
    return { clock, levels: new TenantLevels(clock, () => 0.5) };
  }
  const tenants = Array.from({ length: 300 }, (_, number) => `tenant ${number}`);

  test('whole tenants, the sheddable before the rest, the critical never', () => {
    const { levels } = setup();
    const waits = (priority: 'critical' | 'default' | 'sheddable', now: number) =>
      tenants.filter((tenant) => levels.mayWait(priority, tenant, now)).length;
    expect(waits('sheddable', 0)).toBe(300);
    for (let window = 1; window <= 8; window++) {
      levels.noteDrop();
      levels.mayWait('default', 'a', window * 100);
    }
    const now = 850;
    expect(waits('sheddable', now)).toBe(0);
    expect(waits('default', now)).toBeGreaterThan(100);
    expect(waits('default', now)).toBe(waits('default', now));
    for (let window = 10; window <= 100; window++) {
      levels.noteDrop();
      levels.mayWait('default', 'a', window * 100);
    }
    expect([waits('default', 10_050), waits('critical', 10_050)]).toEqual([0, 300]);
  });

  test('fewer and fewer tenants, once no request has to be dropped', () => {
    const { levels } = setup();
    for (let window = 1; window <= 30; window++) {
      levels.noteDrop();
      levels.mayWait('default', 'a', window * 100);
    }
    expect(levels.threshold).toBe(128);
    for (let window = 31; window <= 131; window++) levels.mayWait('default', 'a', window * 100);
    expect(levels.threshold).toBe(384);
  });

  test('a busy thread or a full heap counts, unless it is busy with refusing', () => {
    const readings = { utilization: () => 0.99, heap: () => 0.1 };
    const busy = new Pressure(readings);
    busy.admitted();
    expect(busy.isHigh(0)).toBe(true);
    for (let refused = 0; refused < 10; refused++) busy.isHigh(100);
    busy.admitted();
    expect(busy.isHigh(251)).toBe(false);
    expect(new Pressure({ utilization: () => 0.1, heap: () => 0.1 }).isHigh(0)).toBe(false);
    const full = new Pressure({ utilization: () => 0.1, heap: () => 0.95 });
    full.admitted();
    expect(full.isHigh(0)).toBe(true);
  });

  test('the process can be asked', () => {
    const pressure = new Pressure();
    pressure.admitted();
    expect(typeof pressure.isHigh(0)).toBe('boolean');
  });
});
