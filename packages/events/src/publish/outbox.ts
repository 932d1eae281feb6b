import type { Published } from '@holdfast/contracts';
import { refuseUnknown } from 'holdfast/fields';
import { type DraftOptions, draftOptions, type EventDraft, eventFactory } from './draft.ts';

export interface Outbox<T = unknown, Tx = unknown> {
  /**
   * Publishes inside `tx`: the event is there when that commits, and not if it does not. The topic must have been declared.
   * Where transactions are synchronous, all is done when this returns.
   */
  publish(tx: Tx, ...drafts: EventDraft<T>[]): readonly Published[] | Promise<readonly Published[]>;
}

/** Publishes with a change of one's own data: in the transaction of a handler's `commit`, or any other of the same store. */
export function outbox<T = unknown, Tx = unknown>(options: DraftOptions<T, Tx>): Outbox<T, Tx> {
  refuseUnknown(draftOptions, options);
  const { broker, toEvent } = eventFactory(options);
  return { publish: (tx, ...drafts) => broker.publishWithin(tx, options.topic, drafts.map(toEvent)) };
}
