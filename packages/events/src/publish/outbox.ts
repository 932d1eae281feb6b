import type { Published } from '@holdfast/contracts';
import { assertKnownFields } from 'holdfast/fields';
import { type DraftOptions, draftOptions, type EventDraft, eventFactory } from './draft.ts';

export interface Outbox<T = unknown, Tx = unknown> {
  /**
   * Publishes inside `tx`: the events exist if it commits, and do not if it rolls back. The topic must have been declared.
   * With synchronous transactions, the events are written when this returns.
   */
  publish(tx: Tx, ...drafts: EventDraft<T>[]): readonly Published[] | Promise<readonly Published[]>;
}

/** Publishes in the same transaction as a change of your own data: that of a handler's `commit`, or any other of the store. */
export function outbox<T = unknown, Tx = unknown>(options: DraftOptions<T, Tx>): Outbox<T, Tx> {
  assertKnownFields(draftOptions, options);
  const { broker, toEvent } = eventFactory(options);
  return { publish: (tx, ...drafts) => broker.publishWithin(tx, options.topic, drafts.map(toEvent)) };
}
