import { type Broker, type NewlyParked, parkedTopic, type Triage } from '@holdfast/contracts';
import type { Clock, Random } from 'holdfast';
import { type Consumer, consumer } from '../consumer/consumer.ts';
import type { HandledEvent } from '../consumer/task.ts';

export interface CollectOptions {
  /** The broker of an engine whose parking lot is a topic. */
  readonly broker: Broker;
  /** The topic whose parked events are collected. */
  readonly topic: string;
  /** The triage of another store, where the events can be listed, searched and replayed. */
  readonly triage: Triage;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/**
 * Copies parked events into a triage, for an engine without one: a consumer of the topic that is the parking lot. An event is
 * acknowledged when the triage has stored it. Storing it twice changes nothing.
 */
export function collectParked({ broker, topic, triage, ...environment }: CollectOptions): Consumer {
  return consumer({
    ...environment,
    broker,
    topic: parkedTopic(topic),
    effects: 'off',
    // These events must never be parked again: retry until the triage is available.
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
