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

/** A notification of what happens to events in this process, sent when it happens. */
export type EventNotice =
  | (NoticeHeader & { readonly type: 'leased'; readonly count: number; readonly suspects: number })
  | (EventHeader & { readonly type: 'begun'; readonly mode: 'live' | 'retry' | 'replay' })
  /**
   * The types from `succeeded` to `returned` are sent when the settlement is decided. The type `settled` is sent later,
   * when the store has answered.
   */
  | (EventHeader & { readonly type: 'succeeded'; readonly tookMs: number })
  | (EventHeader & {
      readonly type: 'retry';
      readonly because: OutcomeClass;
      readonly delayMs: number;
      readonly tookMs: number;
      readonly error: ErrorNote;
    })
  | (EventHeader & { readonly type: 'snoozed'; readonly delayMs: number })
  | (EventHeader & { readonly type: 'parked'; readonly stop: string; readonly error: ErrorNote | undefined })
  /** `because` is the reason of a discard, or the target topic of a reroute. */
  | (EventHeader & { readonly type: 'discarded' | 'rerouted'; readonly because: string })
  /**
   * The event went back to the store, as if it had never been leased: no attempt is counted. `error` is given if the
   * handler failed because a dependency is down.
   */
  | (EventHeader & { readonly type: 'returned'; readonly error?: ErrorNote })
  | (EventHeader & { readonly type: 'lease_lost' })
  /** `settling`: a batch of settlements is sent to the store. `settled`: the store has answered. */
  | (NoticeHeader & { readonly type: 'settling' | 'settled'; readonly count: number })
  | (NoticeHeader & { readonly type: 'store_failed'; readonly what: string; readonly delayMs: number })
  | (NoticeHeader & { readonly type: 'status'; readonly from: ConsumerStatus; readonly to: ConsumerStatus });

/**
 * `dependency_down`: all breakers of a dependency are open, so nothing is leased. `exclusive`: the consumer handles, or
 * waits to handle, a suspect (an event whose lease expired) while the process handles nothing else.
 */
export type ConsumerStatus = 'idle' | 'running' | 'dependency_down' | 'exclusive' | 'stopping' | 'stopped';

export type EventListener = (notice: EventNotice) => void;

const listeners = new Set<EventListener>();
const channel = diagnostics.channel('holdfast:event');

/**
 * Calls `listener` for every notice of every consumer in this process. Returns a function that unsubscribes `listener`.
 */
export function subscribeEvents(listener: EventListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** False: there are no listeners, so the caller need not create the notice. */
export function hasListeners(): boolean {
  return listeners.size > 0 || channel.hasSubscribers;
}

/**
 * Sends a notice to all listeners. If a listener throws, the error is thrown again in a microtask, so that it does not
 * disturb the consumer.
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
