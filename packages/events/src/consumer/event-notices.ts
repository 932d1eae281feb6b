import diagnostics from 'node:diagnostics_channel';
import type { ErrorNote } from '@holdfast/contracts';
import type { OutcomeClass } from 'holdfast';

interface NoticeHeader {
  readonly consumer: string;
  readonly topic: string;
  /** The time by `Clock.now` of the consumer. */
  readonly at: number;
}

interface EventHeader extends NoticeHeader {
  readonly id: string;
  readonly key: string | undefined;
  readonly attempt: number;
}

/** A notification of what a consumer does. */
export type EventNotice =
  /** The store gave events to the consumer. */
  | (NoticeHeader & { readonly type: 'leased'; readonly count: number; readonly suspects: number })
  /** The handler is called. */
  | (EventHeader & { readonly type: 'begun'; readonly mode: 'live' | 'retry' | 'replay' })
  /**
   * The handler succeeded. The types from `succeeded` to `returned` are sent before the result is stored. `settled` is
   * sent when the store has answered.
   */
  | (EventHeader & { readonly type: 'succeeded'; readonly tookMs: number })
  /** The handler failed, and the event is due again after `delayMs`. */
  | (EventHeader & {
      readonly type: 'retry';
      readonly because: OutcomeClass;
      readonly delayMs: number;
      readonly tookMs: number;
      readonly error: ErrorNote;
    })
  /** The event is put off for `delayMs`, and no attempt is counted. */
  | (EventHeader & { readonly type: 'snoozed'; readonly delayMs: number })
  /** The event was given up, and waits for a person or a rule. */
  | (EventHeader & { readonly type: 'parked'; readonly stop: string; readonly error: ErrorNote | undefined })
  /** `because` is the reason of a discard, or the target topic of a reroute. */
  | (EventHeader & { readonly type: 'discarded' | 'rerouted'; readonly because: string })
  /** The event went back to the store without counting an attempt. `error` is given if a dependency was down. */
  | (EventHeader & { readonly type: 'returned'; readonly error?: ErrorNote })
  /** The lease ended before the event was settled: another consumer has it. */
  | (EventHeader & { readonly type: 'lease_lost' })
  /** `settling`: results are sent to the store. `settled`: the store has answered. */
  | (NoticeHeader & { readonly type: 'settling' | 'settled'; readonly count: number })
  /** The store did not do `what`. The consumer asks again after `delayMs`. */
  | (NoticeHeader & { readonly type: 'store_failed'; readonly what: string; readonly delayMs: number })
  /** The consumer changed its status. */
  | (NoticeHeader & { readonly type: 'status'; readonly from: ConsumerStatus; readonly to: ConsumerStatus });

/**
 * `dependency_down`: nothing is leased, because all breakers of a dependency are open. `exclusive`: one event that may
 * crash the process is handled alone.
 */
export type ConsumerStatus = 'idle' | 'running' | 'dependency_down' | 'exclusive' | 'stopping' | 'stopped';

/**
 * Gets every notice of every consumer of this process, synchronously. What it throws does not reach the consumer: it is
 * thrown again in a microtask.
 */
export type EventListener = (notice: EventNotice) => void;

const listeners = new Set<EventListener>();
const channel = diagnostics.channel('holdfast:event');

/** Calls `listener` for every notice of every consumer in this process. The returned function unsubscribes. */
export function subscribeEvents(listener: EventListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** False: nobody listens, so the caller need not create the notice. */
export function hasListeners(): boolean {
  return listeners.size > 0 || channel.hasSubscribers;
}

/**
 * Sends a notice to all listeners. If a listener throws, the error is thrown again in a microtask, so that the consumer
 * continues.
 */
export function notify(notice: EventNotice): void {
  for (const listener of listeners) {
    try {
      listener(notice);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
  if (channel.hasSubscribers) channel.publish(notice);
}
