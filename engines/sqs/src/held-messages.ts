import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import type { IntakeListener } from '@holdfast/contracts/carrier';
import type { Clock } from 'holdfast';
import { batchesOf, performBatches } from './batches.ts';
import type { Queue } from './queues.ts';
import { SqsError } from './sqs-errors.ts';

/**
 * The visibility timeout of a message can be extended up to this many seconds after it was received, and no
 * longer.
 */
const holdMaxSeconds = 12 * 60 * 60;

/** One delivery of one message. */
export interface SqsHandle {
  readonly queue: Queue;
  readonly receipt: string;
  /** A lower bound for the time at which SQS delivered the message, in ms of `Clock.now`. */
  readonly since: number;
  readonly listener: IntakeListener<SqsHandle>;
}

export interface HeldSettings {
  readonly client: SQSClient;
  readonly clock: Clock;
  readonly visibilitySeconds: number;
  onError(error: unknown): void;
}

/**
 * Deletes messages that this process has received, extends their visibility timeout, or returns them to the
 * queue.
 */
export class HeldMessages {
  readonly #settings: HeldSettings;
  readonly #changes = new Set<Promise<unknown>>();
  #isClosed = false;
  #early: { readonly handle: SqsHandle; readonly seconds: number }[] = [];

  constructor(settings: HeldSettings) {
    this.#settings = settings;
  }

  /**
   * Waits for running changes of visibility timeouts. After that no timeout is extended, so SQS delivers
   * unfinished messages to other processes.
   */
  async close(): Promise<void> {
    await Promise.allSettled(this.#changes);
    this.#isClosed = true;
  }

  /**
   * Deletes messages. Returns false for a message that SQS refused to delete, because another process has
   * received it.
   */
  async done(handles: readonly SqsHandle[]): Promise<boolean[]> {
    const { client, clock } = this.#settings;
    const refused = new Set<SqsHandle>();
    await Promise.all(
      byQueue(handles, (handle) => handle.queue).map(async ([{ name, url }, some]) => {
        const refusals = await performBatches(batchesOf(some), clock, (batch) =>
          client.send(
            new DeleteMessageBatchCommand({
              QueueUrl: url,
              Entries: batch.map(({ receipt }, index) => ({ Id: String(index), ReceiptHandle: receipt })),
            }),
          ),
        );
        for (const [handle, error] of refusals) {
          if (!error.SenderFault)
            throw new SqsError(
              'REFUSED',
              `SQS did not delete a message of ${name}: ${error.Code} ${error.Message ?? ''}`,
            );
          refused.add(handle);
        }
      }),
    );
    return handles.map((handle) => !refused.has(handle));
  }

  async release(handles: readonly SqsHandle[]): Promise<void> {
    await this.#change(handles.map((handle) => ({ handle, seconds: 0 })));
  }

  /** Extends the visibility timeout. A message for which this fails is reported as lost to its listener. */
  async keep(handles: readonly SqsHandle[]): Promise<void> {
    const { visibilitySeconds, onError } = this.#settings;
    const isOld = (handle: SqsHandle) => this.#secondsLeft(handle) < visibilitySeconds;
    const kept = handles.filter((handle) => !isOld(handle));
    const old = handles.filter(isOld);
    if (old.length > 0) {
      const names = [...new Set(old.map(({ queue }) => queue.name))].join(', ');
      onError(
        new SqsError(
          'HELD_TOO_LONG',
          `SQS holds a message for at most 12 hours: ${old.length} of ${names} are lost to this process, and come again`,
        ),
      );
      for (const handle of old) handle.listener.lost([handle]);
    }
    const refused = await this.#change(kept.map((handle) => ({ handle, seconds: visibilitySeconds })));
    for (const handle of refused) handle.listener.lost([handle]);
  }

  /**
   * Returns a message that arrived before its due time. Calls in the same turn of the event loop are sent to
   * SQS as one batch.
   */
  later(handle: SqsHandle, delayMs: number): void {
    const seconds = Math.min(Math.ceil(delayMs / 1000), this.#secondsLeft(handle));
    this.#early.push({ handle, seconds });
    if (this.#early.length > 1) return;
    queueMicrotask(() => {
      const early = this.#early;
      this.#early = [];
      // If this fails, SQS delivers the message again after its visibility timeout, and the message is
      // returned again.
      this.#change(early).catch(() => {});
    });
  }

  #secondsLeft({ since }: SqsHandle): number {
    return holdMaxSeconds - Math.ceil((this.#settings.clock.now() - since) / 1000);
  }

  /**
   * Sets visibility timeouts. Returns the messages that other processes have received. Rejects if SQS failed
   * for some messages: in this case, the visibility timeout of these messages is unknown.
   */
  #change(
    changes: readonly { readonly handle: SqsHandle; readonly seconds: number }[],
  ): Promise<SqsHandle[]> {
    const change = this.#perform(changes).finally(() => this.#changes.delete(change));
    this.#changes.add(change);
    return change;
  }

  async #perform(
    changes: readonly { readonly handle: SqsHandle; readonly seconds: number }[],
  ): Promise<SqsHandle[]> {
    const { client, clock } = this.#settings;
    if (this.#isClosed) throw new SqsError('REFUSED', 'the engine on SQS was closed');
    const refused: SqsHandle[] = [];
    await Promise.all(
      byQueue(changes, ({ handle }) => handle.queue).map(async ([{ name, url }, some]) => {
        const refusals = await performBatches(batchesOf(some), clock, (batch) =>
          client.send(
            new ChangeMessageVisibilityBatchCommand({
              QueueUrl: url,
              Entries: batch.map(({ handle, seconds }, index) => ({
                Id: String(index),
                ReceiptHandle: handle.receipt,
                VisibilityTimeout: seconds,
              })),
            }),
          ),
        );
        for (const [{ handle }, error] of refusals) {
          if (!error.SenderFault)
            throw new SqsError(
              'REFUSED',
              `SQS did not extend a message of ${name}: ${error.Code} ${error.Message ?? ''}`,
            );
          refused.push(handle);
        }
      }),
    );
    return refused;
  }
}

function byQueue<T>(items: readonly T[], queueOf: (item: T) => Queue): [Queue, T[]][] {
  return [...Map.groupBy(items, queueOf)];
}
