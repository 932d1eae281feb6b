import diagnostics from 'node:diagnostics_channel';
import type { ErrorNote } from '@holdfast/contracts';
import type { OutcomeClass } from 'holdfast';

interface NoticeHeader {
  /** The name of the consumer. */
  readonly consumer: string;
  readonly topic: string;
  /** On the scale of `Clock.now` of the consumer. */
  readonly at: number;
}

interface EventHeader extends NoticeHeader {
  readonly id: string;
  readonly key: string | undefined;
  readonly attempt: number;
}

/** What happens to events in this process, reported as it happens. */
export type EventNotice =
  | (NoticeHeader & { readonly type: 'leased'; readonly count: number; readonly suspects: number })
  | (EventHeader & { readonly type: 'begun'; readonly mode: 'live' | 'retry' | 'replay' })
  /** From here to `returned`: the settlement is decided. It takes effect with `settled`. */
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
  /** `because` is the reason of a discard, and the target topic of a reroute. */
  | (EventHeader & { readonly type: 'discarded' | 'rerouted'; readonly because: string })
  /** The event is as if it had never been leased. `error`: it was a probe that failed, and no attempt is counted. */
  | (EventHeader & { readonly type: 'returned'; readonly error?: ErrorNote })
  | (EventHeader & { readonly type: 'lease_lost' })
  /** `settling`: a batch of settlements is sent to the store. `settled`: the store has answered. */
  | (NoticeHeader & { readonly type: 'settling' | 'settled'; readonly count: number })
  /** A call of the store failed; it is retried after `delayMs`. */
  | (NoticeHeader & { readonly type: 'store_failed'; readonly what: string; readonly delayMs: number })
  | (NoticeHeader & { readonly type: 'status'; readonly from: ConsumerStatus; readonly to: ConsumerStatus });

/** `dependency_down`: a breaker of a dependency is open. `exclusive`: the consumer runs, or waits to run, a suspect alone. */
export type ConsumerStatus = 'idle' | 'running' | 'dependency_down' | 'exclusive' | 'stopping' | 'stopped';

export type EventListener = (notice: EventNotice) => void;

const listeners = new Set<EventListener>();
const channel = diagnostics.channel('holdfast:event');

/** Calls `listener` with every notice of every consumer in this process. Returns a function that unsubscribes it. */
export function subscribeEvents(listener: EventListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Without listeners, notices are not created. */
export function hasListeners(): boolean {
  return listeners.size > 0 || channel.hasSubscribers;
}

/** An error of a listener is thrown from a microtask, so that it does not disturb the consumer. */
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
