import { type Broker, type NewlyParked, parkedTopic, type Triage } from '@holdfast/contracts';
import type { Clock, Random } from 'holdfast';
import { type Consumer, consumer } from '../consumer/consumer.ts';
import type { HandledEvent } from '../consumer/task.ts';

export interface CollectOptions {
  /** The broker of an engine that moves parked events to a dead-letter topic. */
  readonly broker: Broker;
  readonly topic: string;
  /** The triage of another engine, in which the parked events can be listed, searched and replayed. */
  readonly triage: Triage;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/**
 * Copies parked events to a triage, for engines without one. It creates a consumer of the dead-letter topic, which
 * acknowledges an event when the triage has stored it. Storing an event twice changes nothing.
 */
export function collectParked({ broker, topic, triage, ...environment }: CollectOptions): Consumer {
  return consumer({
    ...environment,
    broker,
    topic: parkedTopic(topic),
    effects: 'off',
    // These events must never be parked a second time. So retry until the triage is available.
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
