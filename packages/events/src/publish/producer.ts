import { assertEvents, type NewEvent, type Ordering, type Published } from '@holdfast/contracts';
import { type Policy, withoutAmbient } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import { type DraftOptions, draftOptions, type EventDraft, eventFactory } from './draft.ts';

export interface ProducerOptions<T = unknown, Tx = unknown> extends DraftOptions<T, Tx> {
  /** Declares the topic so; as it is, or `none`, unless given. */
  readonly ordering?: Ordering | undefined;
  /** Repeats a publish that failed: under the same ids, so that nothing is stored twice. */
  readonly policy?: Policy | undefined;
}

const known: Readonly<Record<keyof ProducerOptions, true>> = {
  ...draftOptions,
  ordering: true,
  policy: true,
};

export interface Producer<T = unknown> {
  /** Resolves when it is stored, as durably as the engine stores. */
  publish(draft: EventDraft<T>): Promise<Published>;
  /** All or none, in this order. */
  publishAll(drafts: readonly EventDraft<T>[]): Promise<readonly Published[]>;
}

interface Waiting {
  readonly events: readonly NewEvent[];
  resolve(published: readonly Published[]): void;
  reject(error: unknown): void;
}

/** Publishes events. Those that are published in one turn, or while the store is busy with others, share a write. */
export function producer<T = unknown, Tx = unknown>(options: ProducerOptions<T, Tx>): Producer<T> {
  refuseUnknown(known, options);
  const { topic, ordering, policy } = options;
  const { broker, toEvent } = eventFactory(options);
  let declared: Promise<unknown> | undefined;
  let waiting: Waiting[] = [];
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
    while (waiting.length > 0) await sendTogether(takeBatch());
    isSending = false;
  }

  async function sendTogether(batch: readonly Waiting[]): Promise<void> {
    try {
      const published = await store(batch.flatMap(({ events }) => events));
      let from = 0;
      for (const { events, resolve } of batch) {
        resolve(published.slice(from, from + events.length));
        from += events.length;
      }
    } catch (error) {
      // One of them is not what this engine can store, and nobody knows which: each has its own answer.
      if (batch.length > 1 && (error as { code?: unknown } | undefined)?.code === 'HOLDFAST_OPTIONS')
        for (const each of batch) await sendTogether([each]);
      else for (const { reject } of batch) reject(error);
    }
  }

  /** As many as the engine takes at once. */
  function takeBatch(): Waiting[] {
    let count = 0;
    const end = waiting.findIndex(({ events }, index) => {
      count += events.length;
      return index > 0 && count > broker.limits.batchMax;
    });
    const batch = end < 0 ? waiting : waiting.slice(0, end);
    waiting = end < 0 ? [] : waiting.slice(end);
    return batch;
  }

  async function publishAll(drafts: readonly EventDraft<T>[]): Promise<readonly Published[]> {
    const events = drafts.map(toEvent);
    // Here, so that one that cannot be stored is its own publisher's business alone.
    assertEvents(events, broker.limits);
    if (events.length === 0) return [];
    return new Promise((resolve, reject) => {
      waiting.push({ events, resolve, reject });
      if (isSending) return;
      isSending = true;
      // Others share this write: the patience of who is first is not theirs.
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
