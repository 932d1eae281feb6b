import type { Delivery, Settlement } from '@holdfast/contracts';
import type { CarrierEngine } from '@holdfast/contracts/carrier';
import { type KafkaOptions, openKafka } from '@holdfast/kafka';
import { sleep, systemClock } from 'holdfast';
import { quick } from './kafka-harness.ts';

let names = 0;

/** A name that no other test uses. */
export function newName(what: string): string {
  return `${what}-${process.pid}-${systemClock.epochMs().toString(36)}-${++names}`;
}

const opened: CarrierEngine[] = [];

/** For `afterAll`: tests run side by side. */
export async function closeEngines(): Promise<void> {
  await Promise.all(opened.map((engine) => engine.close()));
}

/** An engine that `closeEngines` closes. */
export function openEngine(url: string, options: Partial<KafkaOptions> = {}): CarrierEngine {
  const engine = openKafka({ ...quick, url, partitions: 1, ...options });
  opened.push(engine);
  return engine;
}

/** Leases until there are `count` events, or `ms` have passed. */
export async function take(
  { broker }: CarrierEngine,
  topic: string,
  count: number,
  ms = 15_000,
  leaseMs = 60_000,
): Promise<Delivery[]> {
  const taken: Delivery[] = [];
  const endsAt = systemClock.now() + ms;
  while (taken.length < count && systemClock.now() < endsAt) {
    const request = { owner: 'w', limit: count - taken.length, leaseMs };
    taken.push(...(await broker.lease(topic, request)).deliveries);
    if (taken.length < count) await sleep(systemClock, 20);
  }
  return taken;
}

const error = { type: 'TypeError', message: 'no street', fingerprint: 'f' };

export function retryOf({ lease }: Delivery, delayMs = 0): Settlement {
  return { lease, kind: 'retry', delayMs, error, story: [] };
}

export function ackOf({ lease }: Delivery): Settlement {
  return { lease, kind: 'ack' };
}

export function parkOf({ lease }: Delivery): Settlement {
  return { lease, kind: 'park', stop: 'attempts_exhausted', error, story: [], consumer: 'shipping' };
}

export function payloadsOf(deliveries: readonly Delivery[]): unknown[] {
  return deliveries.map(({ payload }) => payload);
}
