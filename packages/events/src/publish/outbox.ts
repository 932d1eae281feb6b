import type { Published } from '@holdfast/contracts';
import { assertKnownFields } from 'holdfast/fields';
import { type DraftOptions, draftOptions, type EventDraft, eventFactory } from './draft.ts';

export interface Outbox<T = unknown, Tx = unknown> {
  /**
   * Publishes within the transaction `tx`: the events exist if `tx` commits, and do not exist if `tx` rolls back. The
   * topic must be declared already. If the engine's transactions are synchronous, the events are written when this
   * function returns.
   */
  publish(tx: Tx, ...drafts: EventDraft<T>[]): readonly Published[] | Promise<readonly Published[]>;
}

/**
 * Creates an outbox, which publishes events in the same transaction as a change of your own data. This may be the
 * transaction of a handler's `commit`, or any other transaction of the same store.
 */
export function outbox<T = unknown, Tx = unknown>(options: DraftOptions<T, Tx>): Outbox<T, Tx> {
  assertKnownFields(draftOptions, options);
  const { broker, toEvent } = eventFactory(options);
  return { publish: (tx, ...drafts) => broker.publishWithin(tx, options.topic, drafts.map(toEvent)) };
}
