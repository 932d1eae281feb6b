import { type Broker, type NewlyParked, parkedTopic, type Triage } from '@holdfast/contracts';
import type { Clock, Random } from 'holdfast';
import { type Consumer, consumer } from '../consumer/consumer.ts';
import type { HandledEvent } from '../consumer/task.ts';

/** The options of `collectParked`. */
export interface CollectOptions {
  /**
   * The broker of an engine without a triage (store of parked events). Such a broker moves parked events to a
   * dead-letter topic. Required.
   */
  readonly broker: Broker;
  /** The topic whose parked events are collected. Required. */
  readonly topic: string;
  /** The dead-letter topic. Default: `<topic>.dlq`. */
  readonly from?: string | undefined;
  /** The triage (store of parked events) of another engine. Parked events are copied into it. Required. */
  readonly triage: Triage;
  /** The clock for delays and time limits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: the system's. */
  readonly random?: Random | undefined;
}

/**
 * Creates a consumer that moves parked events from the dead-letter topic of `topic` to a triage. There,
 * operators can search and replay them.
 */
export function collectParked({ broker, topic, from, triage, ...environment }: CollectOptions): Consumer {
  return consumer({
    ...environment,
    broker,
    topic: from ?? parkedTopic(topic),
    effects: 'off',
    // These events are already parked, so they must not be parked again: retry until the triage is available.
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
    consumer: undefined,
    error: lastError,
    story,
  };
  const content = { id, payload, type, key, tenant, headers, correlationId, idempotencyKey };
  return { ...content, topic, originTopic, firstSeenAt, expiresAt, replay, diagnosis };
}
