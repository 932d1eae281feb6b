import { describe, expect, test } from 'vitest';
import { openTestConsole, parkedEvent } from './open-test-console.ts';

const why = 'a test';

async function withParked(count = 3) {
  const made = await openTestConsole({ redact: ['card'] });
  await made.engine.triage.put(Array.from({ length: count }, (_, index) => parkedEvent(`e${index}`)));
  return made;
}

describe('parked events', () => {
  test('are listed, grouped and counted', async () => {
    const { ask } = await withParked();
    const { json } = await ask('GET /parked?topic=orders&limit=2');
    expect(json).toMatchObject({ count: 3, items: [{ topic: 'orders', stop: 'not_retryable' }, {}] });
    const next = await ask(`GET /parked?topic=orders&limit=2&cursor=${encodeURIComponent(json.cursor)}`);
    expect(next.json.items).toHaveLength(1);
    expect(next.json.cursor).toBeUndefined();
    expect((await ask('GET /parked?-tenant=acme')).json.count).toBe(0);
    expect((await ask('GET /parked?header=region:eu&tenant=acme&tenant=beta')).json.count).toBe(3);
    const groups = await ask('GET /parked/groups');
    expect(groups.json.items).toMatchObject([
      { count: 3, recent: 3, reason: 'TypeError', stop: 'not_retryable', removedInMs: expect.any(Number) },
    ]);
    expect((await ask('GET /parked/groups?by=tenant')).json.items).toEqual([{ value: 'acme', count: 3 }]);
    const histogram = await ask('GET /parked/histogram');
    expect(histogram.json).toMatchObject({ bucketMs: expect.any(Number), buckets: [{ count: 3 }] });
    expect((await ask('GET /parked/histogram?bucketMs=86400000')).json.bucketMs).toBe(864e5);
  });

  test('are shown with covered fields, and uncovered with a reason, on record', async () => {
    const { ask, engine } = await withParked(1);
    const { json, headers } = await ask('GET /parked/e0');
    expect(headers.get('etag')).toBe('"1"');
    expect(json.event.payload.text).toBe('{"total":"12","card":"[redacted]"}');
    expect(json.event.parkedRuns).toMatchObject([
      {
        reason: 'TypeError',
        stopSays: expect.stringContaining('replay after the cause is repaired'),
        story: [{ attempt: 1 }],
      },
    ]);
    const shown = await ask('POST /parked/e0/uncover', { why });
    expect(shown.json.event.payload.text).toContain('4111');
    const { items } = await engine.audit.list({ what: 'uncover' }, { limit: 5 });
    expect(items).toMatchObject([{ who: 'token', why, subjects: ['event:e0'] }]);
  });

  test('are edited with the version that was seen', async () => {
    const { ask, engine } = await withParked(1);
    const body = { set: { 'payload.total': 12 }, why };
    const dry = await ask('PATCH /parked/e0', { ...body, dry: true });
    expect(dry.json).toMatchObject({
      changes: [{ path: 'payload.total', before: '"12"', after: '12' }],
      version: 1,
    });
    expect((await ask('PATCH /parked/e0', body, { 'if-match': '"7"' })).json).toMatchObject({
      status: 412,
      type: '/problems/changed',
      detail: 'Event e0 has version 1, and you have seen 7.',
    });
    expect((await ask('PATCH /parked/e0', body, { 'if-match': '"1"' })).status).toBe(200);
    expect((await engine.triage.get('e0'))?.payload).toBe('{"total":12,"card":"4111"}');
    const masked = await ask('PATCH /parked/e0', { payload: '{"card":"[redacted]"}', why });
    expect(masked.json.detail).toBe(
      'Some fields still are [redacted]: uncover the event before you edit it.',
    );
  });

  test('that are gone say what became of them', async () => {
    const { ask } = await withParked(1);
    expect((await ask('GET /parked/nothing')).json).toMatchObject({
      status: 404,
      detail: 'There is no parked event nothing.',
    });
  });
});

describe('acts on many events', () => {
  test('are counted before, and only what was seen is changed', async () => {
    const { ask, engine } = await withParked(3);
    const dry = await ask('POST /discards', { filter: { topic: ['orders'] }, dry: true });
    expect(dry.json.preview).toMatchObject({ count: 3, command: 'holdfast dlq discard --topic orders' });
    await new Promise((resolve) => setTimeout(resolve, 5));
    await engine.triage.put([parkedEvent('late')]);
    const { status, json } = await ask('POST /discards', {
      filter: { topic: ['orders'] },
      asOf: dry.json.preview.asOf,
      why,
    });
    expect(status).toBe(202);
    await expect.poll(() => engine.triage.count({ status: 'discarded' })).toBe(3);
    expect(await engine.triage.count({})).toBe(1);
    const { items } = (await ask('GET /audit?what=discard')).json;
    expect(items).toMatchObject([{ canUndo: true, subjects: [`operation:${json.operation.id}`] }]);
    await ask(`POST /audit/${items[0].id}/undo`, { why: 'too quick' });
    expect(await engine.triage.count({})).toBe(4);
  });

  test('with the same key are one act', async () => {
    const { ask, engine } = await withParked(2);
    const body = { filter: { topic: ['orders'] }, why };
    const headers = { 'idempotency-key': 'k1' };
    const answers = await Promise.all([
      ask('POST /discards', body, headers),
      ask('POST /discards', body, headers),
    ]);
    expect(new Set(answers.map(({ json }) => json.operation.id)).size).toBe(1);
    const { items } = await engine.triage.operations.list({}, { limit: 5 });
    expect(items).toHaveLength(1);
  });

  test('need a reason, and a filter', async () => {
    const { ask } = await withParked(1);
    expect((await ask('POST /discards', { filter: { topic: ['orders'] } })).json).toMatchObject({
      status: 422,
      type: '/problems/no-reason',
    });
    expect((await ask('POST /discards', { filter: {}, why })).json).toMatchObject({
      status: 422,
      type: '/problems/empty-filter',
    });
  });

  test('a replay publishes events again, and can be stopped', async () => {
    const { ask, engine } = await withParked(2);
    const { json } = await ask('POST /replays', { filter: { topic: ['orders'] }, canary: 0, why });
    await expect.poll(async () => (await engine.broker.counts('orders')).ready).toBe(2);
    const { id } = json.operation;
    expect((await ask(`POST /replays/${id}/stop`, { why })).status).toBe(200);
    expect((await ask(`GET /replays/${id}`)).json.operation).toMatchObject({ kind: 'replay', who: 'token' });
    expect((await ask('GET /replays')).json.items).toMatchObject([{ id }]);
    expect((await ask('GET /replays/nothing')).status).toBe(404);
  });
});

describe('topics', () => {
  test('are paused and go on', async () => {
    const { ask } = await withParked(1);
    const put = await ask('PUT /controls', {
      control: { kind: 'pause', topic: 'orders' },
      forMs: 60_000,
      why,
    });
    expect(put.json.control).toMatchObject({ about: 'orders', says: 'paused', why });
    expect((await ask('GET /topics/orders')).json.topic.controls).toHaveLength(1);
    const id = encodeURIComponent(put.json.control.id);
    expect((await ask(`DELETE /controls/${id}`, { why })).json).toEqual({ removed: true });
    expect((await ask('GET /topics')).json.items).toMatchObject([
      { topic: 'orders', parked: 1, controls: [] },
    ]);
    expect((await ask('PUT /controls', { control: { kind: 'pause', topic: 'ordres' }, why })).status).toBe(
      404,
    );
  });

  test('show what waits, and make it due', async () => {
    const { ask, engine } = await withParked(0);
    await engine.broker.publish('orders', [{ id: 'late', payload: '', delayMs: 60_000 }]);
    expect((await ask('GET /topics/orders/waiting?state=delayed')).json.items).toMatchObject([
      { id: 'late' },
    ]);
    expect((await ask('GET /topics/orders/due')).json.counts.reduce((a: number, b: number) => a + b)).toBe(1);
    const { json } = await ask('POST /topics/orders/waiting/retry', { ids: ['late'], why });
    expect(json).toEqual({ changed: 1 });
    expect((await ask('GET /topics/orders/waiting?state=nonsense')).json.detail).toContain('got "nonsense"');
  });
});

test('the overview says that nothing needs anybody, or what does', async () => {
  const { ask, engine } = await withParked(0);
  expect((await ask('GET /overview')).json).toMatchObject({ headline: 'Nothing needs you.', needs: [] });
  await engine.triage.put(Array.from({ length: 12 }, (_, index) => parkedEvent(`n${index}`)));
  await expect
    .poll(async () => (await ask('GET /overview?window=15m')).json, { timeout: 5000 })
    .toMatchObject({
      headline: 'One thing needs you.',
      needs: [{ kind: 'growing', state: 'parked', link: expect.stringMatching(/^\/parked\?group=/) }],
      badges: { parked: 12 },
    });
});

test('the overview names parked events that wait, and what the store knows of the time before the console', async () => {
  const { ask } = await withParked(2);
  const { json } = await ask('GET /overview?window=1h');
  expect(json).toMatchObject({
    headline: '2 events wait in the parking lot.',
    needs: [{ kind: 'waiting', link: expect.stringMatching(/^\/parked/) }],
  });
  expect(json.summary).toMatch(
    /^No process has reported finished work since this console started, \S+ ago\./,
  );
  const figure = json.figures.find(({ name }: { name: string }) => name === 'parked');
  expect(figure).toMatchObject({ value: 2, says: '2 in this window' });
});

test('an edit that would replace JSON by another text is refused, unless it is meant', async () => {
  const { ask } = await withParked(1);
  const { json } = await ask('GET /parked');
  const edit = (more: object) =>
    ask(`PATCH /parked/${json.items[0].id}`, { payload: '{"total":}', why, ...more });
  expect((await edit({})).json.detail).toBe(
    "The payload is not JSON: Unexpected token '}', at line 1, column 10. If that is meant, give asText: true.",
  );
  expect((await edit({ asText: true })).json.changes).not.toEqual([]);
});

test('the live stream begins with the figures', async () => {
  const { url } = await withParked(1);
  const response = await fetch(`${url}api/v1/live`, {
    headers: { authorization: `Bearer ${(await import('./open-test-console.ts')).operateToken}` },
  });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  let text = '';
  for await (const part of response.body!) {
    text += new TextDecoder().decode(part);
    if (text.includes('event: ping')) break;
  }
  expect(text).toContain('event: hello');
  expect(text).toContain('event: figures');
});

test('the OpenAPI document has every route with its role', async () => {
  const { ask } = await withParked(0);
  const { json } = await ask('GET /openapi.json');
  expect(json.openapi).toBe('3.1.0');
  expect(json.paths['/parked/{id}'].patch).toMatchObject({ 'x-role': 'operate' });
  expect(JSON.stringify(json)).not.toContain('"$ref":"#/definitions');
});
