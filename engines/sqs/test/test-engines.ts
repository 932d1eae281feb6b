import type { Delivery, Settlement } from '@holdfast/contracts';
import type { CarrierEngine } from '@holdfast/contracts/carrier';
import { openSqs, type SqsOptions } from '@holdfast/sqs';
import { sleep, systemClock } from 'holdfast';
import { access, removeQueues } from './sqs-harness.ts';

const opened: CarrierEngine[] = [];
const prefixes = new Map<string, string>();

/** A start of names that no other test uses. `closeEngines` removes its queues. */
export function newPrefix(endpoint: string): string {
  const prefix = `s${process.pid}-${systemClock.epochMs().toString(36)}-${prefixes.size}-`;
  prefixes.set(prefix, endpoint);
  return prefix;
}

/** For `afterAll`: tests run side by side. */
export async function closeEngines(): Promise<void> {
  await Promise.all(opened.map((engine) => engine.close()));
  await Promise.all(Array.from(prefixes, ([prefix, endpoint]) => removeQueues(endpoint, prefix)));
}

/** An engine that `closeEngines` closes. Its times are short. */
export function openEngine(endpoint: string, options: Partial<SqsOptions> = {}): CarrierEngine {
  const engine = openSqs({ ...access, endpoint, visibility: '2s', waitTime: '1s', ...options });
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
