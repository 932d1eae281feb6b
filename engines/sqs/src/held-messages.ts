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

/** SQS holds a message for one process for at most this long after it was received, however often that is extended. */
const holdMaxSeconds = 12 * 60 * 60;

/** One delivery of one message. */
export interface SqsHandle {
  readonly queue: Queue;
  readonly receipt: string;
  /** On the scale of `Clock.now`: the message was received at this time, or later. */
  readonly since: number;
  readonly listener: IntakeListener<SqsHandle>;
}

export interface HeldSettings {
  readonly client: SQSClient;
  readonly clock: Clock;
  readonly visibilitySeconds: number;
  onError(error: unknown): void;
}

/** Messages that this process has received: they are deleted, extended, or given back. */
export class HeldMessages {
  readonly #settings: HeldSettings;
  readonly #changes = new Set<Promise<unknown>>();
  #isClosed = false;
  #early: { readonly handle: SqsHandle; readonly seconds: number }[] = [];

  constructor(settings: HeldSettings) {
    this.#settings = settings;
  }

  /** Waits until what is given back is given back. From then on nothing is extended: SQS delivers what is not done to others. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#changes);
    this.#isClosed = true;
  }

  /** False for those that SQS refused: they were received by another process in the meantime. */
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

  /** Extends the hold. What cannot be extended is lost. */
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

  /** Gives back a message that came before it was due. Those of one turn of the event loop go together. */
  later(handle: SqsHandle, delayMs: number): void {
    const seconds = Math.min(Math.ceil(delayMs / 1000), this.#secondsLeft(handle));
    this.#early.push({ handle, seconds });
    if (this.#early.length > 1) return;
    queueMicrotask(() => {
      const early = this.#early;
      this.#early = [];
      // If this fails, the message comes again when SQS no longer holds it, and is given back again.
      this.#change(early).catch(() => {});
    });
  }

  #secondsLeft({ since }: SqsHandle): number {
    return holdMaxSeconds - Math.ceil((this.#settings.clock.now() - since) / 1000);
  }

  /** Returns those that are no longer ours. Rejects if the server failed for some: then it is not known how long it holds them. */
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
