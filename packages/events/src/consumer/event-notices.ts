import diagnostics from 'node:diagnostics_channel';
import type { ErrorNote } from '@holdfast/contracts';
import type { OutcomeClass } from 'holdfast';

interface NoticeHeader {
  readonly consumer: string;
  readonly topic: string;
  /** When it happened, on the scale of `Clock.now` of the consumer. */
  readonly at: number;
}

interface EventHeader extends NoticeHeader {
  readonly id: string;
  readonly key: string | undefined;
  readonly attempt: number;
}

/** A notification about something that a consumer has done. */
export type EventNotice =
  /** The consumer has leased `count` events. */
  | (NoticeHeader & { readonly type: 'leased'; readonly count: number; readonly suspects: number })
  /** The handler is called. */
  | (EventHeader & { readonly type: 'begun'; readonly mode: 'live' | 'retry' | 'replay' })
  /**
   * The handler succeeded. This notice and the notices below it, up to `returned`, are sent before the result
   * is stored. `settled` is sent when the store has answered.
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
  /** The event is due again after `delayMs`, and no attempt is counted. */
  | (EventHeader & { readonly type: 'snoozed'; readonly delayMs: number })
  /** The event is parked: it is not retried, and waits for an operator or a triage rule. */
  | (EventHeader & {
      readonly type: 'parked';
      readonly stop: string;
      readonly error: ErrorNote | undefined;
      /** Why the event was not tried again, and what to do, if `stop` alone does not say it. */
      readonly advice?: string;
    })
  /**
   * The event was removed (`discarded`) or moved to another topic (`rerouted`). `because` is the reason of a
   * discard, or the target topic of a reroute.
   */
  | (EventHeader & { readonly type: 'discarded' | 'rerouted'; readonly because: string })
  /**
   * The event went back to the store, and no attempt is counted. `error` is given if a dependency was down.
   */
  | (EventHeader & { readonly type: 'returned'; readonly error?: ErrorNote })
  /** The lease ended before the result was stored, so another consumer may have the event. */
  | (EventHeader & { readonly type: 'lease_lost' })
  /** `settling`: `count` results are sent to the store. `settled`: the store has answered. */
  | (NoticeHeader & { readonly type: 'settling' | 'settled'; readonly count: number })
  /** A call of the store failed; `what` names the call. The consumer calls again after `delayMs`. */
  | (NoticeHeader & { readonly type: 'store_failed'; readonly what: string; readonly delayMs: number })
  /** The consumer changed its status. */
  | (NoticeHeader & { readonly type: 'status'; readonly from: ConsumerStatus; readonly to: ConsumerStatus });

/**
 * `dependency_down`: no event is leased, because all breakers of a dependency are open. `exclusive`: an event
 * that may crash the process is handled while nothing else runs.
 */
export type ConsumerStatus = 'idle' | 'running' | 'dependency_down' | 'exclusive' | 'stopping' | 'stopped';

/**
 * Receives every notice of every consumer in this process, synchronously. An error that it throws does not
 * reach the consumer: the error is thrown again in a microtask.
 */
export type EventListener = (notice: EventNotice) => void;

const listeners = new Set<EventListener>();
const channel = diagnostics.channel('holdfast:event');

/** Calls `listener` for every notice of every consumer in this process. The returned function unsubscribes. */
export function subscribeEvents(listener: EventListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** False: nothing subscribes to the notices, so the caller need not create one. */
export function hasListeners(): boolean {
  return listeners.size > 0 || channel.hasSubscribers;
}

/**
 * Sends a notice to all listeners. If a listener throws, the consumer continues: the error is thrown again in
 * a microtask.
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
