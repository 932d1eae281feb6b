import { type Broker, type NewlyParked, parkedTopic, type Triage } from '@holdfast/contracts';
import type { Clock, Random } from 'holdfast';
import { type Consumer, consumer } from '../consumer/consumer.ts';
import type { HandledEvent } from '../consumer/task.ts';

export interface CollectOptions {
  /** Of an engine whose parking lot is a topic. */
  readonly broker: Broker;
  /** Whose parked events are collected. */
  readonly topic: string;
  /** Of another store, where they can be listed, searched and replayed. */
  readonly triage: Triage;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/**
 * Brings parked events into a triage, where the engine that carries them has none: a consumer of the topic that is its parking
 * lot. An event is acknowledged when the triage has it, and one that it has already changes nothing.
 */
export function collectParked({ broker, topic, triage, ...environment }: CollectOptions): Consumer {
  return consumer({
    ...environment,
    broker,
    topic: parkedTopic(topic),
    effects: 'off',
    // It is the last place they can go: while the triage is away they wait here.
    policy: { attempts: 1_000_000, retryOn: 'any', backoff: { cap: '60s' } },
    handler: async (event) => {
      await triage.put([newlyParked(event, topic)]);
    },
  });
}

function newlyParked({ delivery }: HandledEvent, topic: string): NewlyParked {
  const { id, payload, type, key, tenant, headers, correlationId, idempotencyKey } = delivery;
  const { originTopic, firstSeenAt, expiresAt, replay, lastError, story } = delivery;
  const diagnosis = delivery.diagnosis ?? {
    reason: lastError?.type ?? 'unknown',
    message: lastError?.message ?? '',
    stop: 'unknown',
    finalAttempt: delivery.attempts,
    error: lastError,
    story,
  };
  const content = { id, payload, type, key, tenant, headers, correlationId, idempotencyKey };
  return { ...content, topic, originTopic, firstSeenAt, expiresAt, replay, diagnosis };
}
