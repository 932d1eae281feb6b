import { assertEvents, type NewEvent, type Ordering, type Published } from '@holdfast/contracts';
import { type Policy, withoutAmbient } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { type DraftOptions, draftOptions, type EventDraft, eventFactory } from './draft.ts';

/** The options of `producer`. Required are `topic`, and `engine` or `broker`. */
export interface ProducerOptions<T = unknown, Tx = unknown> extends DraftOptions<T, Tx> {
  /**
   * The ordering of the topic. `key`: events with the same key are handled one after the other. Default: an
   * existing topic keeps its own, a new one has `none`.
   */
  readonly ordering?: Ordering | undefined;
  /**
   * A policy that retries a failed publish. The event ids stay the same, so no event is stored twice.
   * Default: none.
   */
  readonly policy?: Policy | undefined;
}

const known: Readonly<Record<keyof ProducerOptions, true>> = {
  ...draftOptions,
  ordering: true,
  policy: true,
};

/** Publishes events to one topic. When a call resolves, the events are stored. */
export interface Producer<T = unknown> {
  /** Publishes one event. Resolves when the event is stored durably. */
  publish(draft: EventDraft<T>): Promise<Published>;
  /** Publishes all events in this order. If one event is refused, none of them is published. */
  publishAll(drafts: readonly EventDraft<T>[]): Promise<readonly Published[]>;
}

interface PendingPublish {
  readonly events: readonly NewEvent[];
  resolve(published: readonly Published[]): void;
  reject(error: unknown): void;
}

/**
 * Creates a producer. Calls of `publish` in the same tick, or while a write is in flight, share the next
 * write.
 */
export function producer<T = unknown, Tx = unknown>(options: ProducerOptions<T, Tx>): Producer<T> {
  assertKnownFields(known, options);
  const { topic, ordering, policy } = options;
  const { broker, toEvent } = eventFactory(options);
  let declared: Promise<unknown> | undefined;
  let pending: PendingPublish[] = [];
  let isSending = false;

  function declare(): Promise<unknown> {
    declared ??= broker.declare(topic, ordering === undefined ? {} : { ordering }).catch((error) => {
      declared = undefined;
      throw error;
    });
    return declared;
  }

  async function store(events: readonly NewEvent[]): Promise<readonly Published[]> {
    const send = async () => {
      await declare();
      return broker.publish(topic, events);
    };
    return policy ? policy.run(send) : send();
  }

  async function send(): Promise<void> {
    while (pending.length > 0) await sendTogether(takeBatch());
    isSending = false;
  }

  async function sendTogether(batch: readonly PendingPublish[]): Promise<void> {
    try {
      const published = await store(batch.flatMap(({ events }) => events));
      let from = 0;
      for (const { events, resolve } of batch) {
        resolve(published.slice(from, from + events.length));
        from += events.length;
      }
    } catch (error) {
      // The engine refused one event of the batch, but does not say which one. So send the events of each
      // `publish` call separately.
      if (batch.length > 1 && (error as { code?: unknown } | undefined)?.code === 'HOLDFAST_OPTIONS')
        for (const each of batch) await sendTogether([each]);
      else for (const { reject } of batch) reject(error);
    }
  }

  /**
   * Removes as many pending `publish` calls from the queue as fit into one batch of the engine, and returns
   * them.
   */
  function takeBatch(): PendingPublish[] {
    let count = 0;
    const end = pending.findIndex(({ events }, index) => {
      count += events.length;
      return index > 0 && count > broker.limits.batchMax;
    });
    const batch = end < 0 ? pending : pending.slice(0, end);
    pending = end < 0 ? [] : pending.slice(end);
    return batch;
  }

  async function publishAll(drafts: readonly EventDraft<T>[]): Promise<readonly Published[]> {
    const events = drafts.map(toEvent);
    // Check the events before they join a batch, so that an invalid event makes only its own `publish` call
    // fail.
    assertEvents(events, broker.limits);
    if (events.length === 0) return [];
    return new Promise((resolve, reject) => {
      pending.push({ events, resolve, reject });
      if (isSending) return;
      isSending = true;
      // Several `publish` calls share this write, so the deadline of the first caller must not apply to it.
      queueMicrotask(() => withoutAmbient(() => void send()));
    });
  }

  return {
    publishAll,
    async publish(draft) {
      const [published] = await publishAll([draft]);
      return published!;
    },
  };
}
