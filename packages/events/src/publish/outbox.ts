import type { Published } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { type DraftOptions, draftOptions, type EventDraft, eventFactory } from './draft.ts';

/**
 * Publishes events within your own database transaction: the events exist only if that transaction commits.
 */
export interface Outbox<T = unknown, Tx = unknown> {
  /** Publishes events within the transaction `tx`: they exist only if `tx` commits. The topic must be declared before. */
  publish(tx: Tx, ...drafts: EventDraft<T>[]): readonly Published[] | Promise<readonly Published[]>;
}

/** Creates an outbox. An outbox publishes events in the same transaction in which you change your own data. */
export function outbox<T = unknown, Tx = unknown>(options: DraftOptions<T, Tx>): Outbox<T, Tx> {
  assertKnownFields(draftOptions, options);
  const { broker, toEvent } = eventFactory(options);
  return {
    publish(tx, ...drafts) {
      if (tx === undefined || tx === null)
        throw new OptionsError(
          'tx',
          tx,
          'the transaction in which you change your own data, as publish(tx, event)',
        );
      return broker.publishWithin(tx, options.topic, drafts.map(toEvent));
    },
  };
}
