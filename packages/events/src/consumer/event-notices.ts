import diagnostics from 'node:diagnostics_channel';
import type { ErrorNote } from '@holdfast/contracts';
import type { OutcomeClass } from 'holdfast';

interface NoticeHeader {
  /** Of the handler. */
  readonly consumer: string;
  readonly topic: string;
  /** On the scale of `Clock.now` of the consumer that speaks. */
  readonly at: number;
}

interface EventHeader extends NoticeHeader {
  readonly id: string;
  readonly key: string | undefined;
  readonly attempt: number;
}

/** Everything that happens to events, as it happens. */
export type EventNotice =
  | (NoticeHeader & { readonly type: 'leased'; readonly count: number; readonly suspects: number })
  | (EventHeader & { readonly type: 'begun'; readonly mode: 'live' | 'retry' | 'replay' })
  /** Its settlement is decided. It counts when it is `settled`. */
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
  /** Because of a reason, to a topic. */
  | (EventHeader & { readonly type: 'discarded' | 'rerouted'; readonly because: string })
  /** It is as if it had never been leased. With an error: a probe that failed, and costs nothing. */
  | (EventHeader & { readonly type: 'returned'; readonly error?: ErrorNote })
  | (EventHeader & { readonly type: 'lease_lost' })
  /** A batch is handed to the store, and is in it. */
  | (NoticeHeader & { readonly type: 'settling' | 'settled'; readonly count: number })
  /** The store did not answer as it should; it is asked again after `delayMs`. */
  | (NoticeHeader & { readonly type: 'store_failed'; readonly what: string; readonly delayMs: number })
  | (NoticeHeader & { readonly type: 'status'; readonly from: ConsumerStatus; readonly to: ConsumerStatus });

/** `dependency_down`: what it depends on does not admit. `exclusive`: it runs, or waits to run, a suspect. */
export type ConsumerStatus = 'idle' | 'running' | 'dependency_down' | 'exclusive' | 'stopping' | 'stopped';

export type EventListener = (notice: EventNotice) => void;

const listeners = new Set<EventListener>();
const channel = diagnostics.channel('holdfast:event');

/** Hears every notice of every consumer in this process. Returns the way to stop. */
export function subscribeEvents(listener: EventListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** While nobody hears, no notice is even made. */
export function hasListeners(): boolean {
  return listeners.size > 0 || channel.hasSubscribers;
}

/** A listener that throws must not harm the work it hears of: its error surfaces on its own. */
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
