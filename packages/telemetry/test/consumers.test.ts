import { policy } from 'holdfast';
import { virtualClock } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type ConsumerLike,
  contentTypes,
  eventMetrics,
  metricsHandler,
  observe,
  observeConsumers,
  prometheus,
  together,
} from '../src/index.ts';
import { readExposition } from './exposition.ts';

function consumer(lag: ConsumerLike['lag'], topic = 'orders'): ConsumerLike {
  return {
    name: 'view@1',
    topic,
    state: () => ({
      running: 3,
      counters: {
        succeeded: 10,
        successAfterRetry: 4,
        retryAttempts: 7,
        discarded: 1,
        rerouted: 2,
        dlqRate: 0.25,
        parkedBecause: { poison: 2, attempts_exhausted: 1 },
      },
    }),
    lag,
  };
}

const lag = { oldestReadyMs: 1500, nextDueInMs: undefined, ready: 5, delayed: 0 };

async function scraped(...consumers: ConsumerLike[]): Promise<Record<string, number>> {
  const observed = observeConsumers(consumers);
  await observed.refresh?.();
  const families = readExposition(prometheus(observed), 'text');
  return Object.fromEntries(
    families.flatMap(({ samples }) =>
      samples.map(({ name, labels, value }) => [`${name} ${Object.values(labels).join(' ')}`, value]),
    ),
  );
}

describe('consumers as metrics', () => {
  test('what they have done comes from them, what waits from their store', async () => {
    expect(await scraped(consumer(async () => lag))).toEqual({
      'holdfast_events_handled_total view@1 orders succeeded': 6,
      'holdfast_events_handled_total view@1 orders succeeded_after_retry': 4,
      'holdfast_events_handled_total view@1 orders discarded': 1,
      'holdfast_events_handled_total view@1 orders rerouted': 2,
      'holdfast_events_retry_attempts_total view@1 orders': 7,
      'holdfast_events_parked_total view@1 orders poison': 2,
      'holdfast_events_parked_total view@1 orders attempts_exhausted': 1,
      'holdfast_events_dlq_rate view@1 orders': 0.25,
      'holdfast_events_running view@1 orders': 3,
      'holdfast_events_waiting orders ready': 5,
      'holdfast_events_waiting orders delayed': 0,
      'holdfast_events_oldest_ready_seconds orders': 1.5,
      'holdfast_events_store_unreachable orders': 0,
    });
  });

  test('a store that does not answer is shown as such, and hides nothing else', async () => {
    const figures = await scraped(
      consumer(() => Promise.reject(new Error('gone'))),
      consumer(async () => ({ ...lag, nextDueInMs: 250 }), 'mails'),
    );
    expect(figures).toMatchObject({
      'holdfast_events_store_unreachable orders': 1,
      'holdfast_events_store_unreachable mails': 0,
      'holdfast_events_next_due_seconds mails': 0.25,
      'holdfast_events_running view@1 orders': 3,
    });
    expect(figures).not.toHaveProperty('holdfast_events_waiting orders ready');
  });

  test('a store that throws at once is one that does not answer', async () => {
    const figures = await scraped(
      consumer(() => {
        throw new Error('closed');
      }),
    );
    expect(figures).toMatchObject({ 'holdfast_events_store_unreachable orders': 1 });
  });

  test('one may be an instance of a class', async () => {
    class Counting {
      readonly name = 'view@1';
      readonly topic = 'orders';
      readonly running = 3;
      readonly #plain = consumer(async () => lag);
      state() {
        return { ...this.#plain.state(), running: this.running };
      }
      lag() {
        return this.#plain.lag();
      }
    }
    expect(await scraped(new Counting())).toEqual(await scraped(consumer(async () => lag)));
  });

  test('two of one name are told together', async () => {
    const one = consumer(async () => lag);
    expect(await scraped(one, one)).toMatchObject({
      'holdfast_events_handled_total view@1 orders succeeded': 12,
      'holdfast_events_parked_total view@1 orders poison': 4,
      'holdfast_events_running view@1 orders': 6,
      'holdfast_events_dlq_rate view@1 orders': 0.25,
      'holdfast_events_waiting orders ready': 5,
    });
  });

  test('a store that hangs is waited for as long as a scrape can spare', async () => {
    const clock = virtualClock();
    const hangs = consumer(() => new Promise(() => {}));
    const observed = observeConsumers([hangs, consumer(async () => lag, 'mails')], { clock });
    const refreshed = observed.refresh?.();
    await clock.advance('1s');
    await refreshed;
    const text = prometheus(observed);
    expect(text).toContain('holdfast_events_store_unreachable{topic="orders"} 1');
    expect(text).toContain('holdfast_events_store_unreachable{topic="mails"} 0');
    expect(clock.pendingTimers).toBe(0);
  });

  test('share an endpoint with policies, which a scrape waits for', async () => {
    const both = together(observe('all'), observeConsumers([consumer(async () => lag)]));
    const response = await metricsHandler(both)(
      new Request('http://localhost/metrics', { headers: { accept: contentTypes.openmetrics } }),
    );
    const names = readExposition(await response.text(), 'openmetrics').map(({ name }) => name);
    expect(names).toContain('holdfast_events_waiting');
    both.stop();
    expect(both.snapshot().flatMap(({ samples }) => samples)).toEqual([]);
  });

  test('have names of one form, and a line each in the document', async () => {
    const { readFile } = await import('node:fs/promises');
    const document = await readFile(new URL('../../../docs/telemetry.md', import.meta.url), 'utf8');
    for (const { name, type, labels, help } of Object.values(eventMetrics)) {
      expect(name).toMatch(/^holdfast_events(_[a-z]+)+$/);
      expect(name.endsWith('_total')).toBe(type === 'counter');
      const words = labels.map((each) => `\`${each}\``).join(', ');
      expect(document).toContain(`| \`${name}\` | ${type} | ${words} | ${help} |`);
    }
  });
});

test('observations of one kind together are one exposition, in which nothing is there twice', async () => {
  const [fast, slow] = [policy({ name: 'fast' }), policy({ name: 'slow' })];
  const observed = together(observe([fast], { bucketsSeconds: [0.1] }), observe([slow]), observe([slow]));
  onTestFinished(() => observed.stop());
  await fast.run(async () => {});
  await slow.run(async () => {});
  for (const format of ['text', 'openmetrics'] as const) {
    const families = readExposition(prometheus(observed, { format }), format);
    const operations = families.find(({ name }) => name.startsWith('holdfast_operations'));
    expect(operations?.samples.map(({ labels, value }) => [labels.policy, value])).toEqual([
      ['fast', 1],
      ['slow', 1],
    ]);
  }
});

test('an option that is not known is refused', () => {
  expect(() => observeConsumers([], { clok: virtualClock() } as never)).toThrow(
    'clok: not an option; did you mean clock?',
  );
});
