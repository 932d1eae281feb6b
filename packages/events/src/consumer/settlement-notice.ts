import type { Settlement } from '@holdfast/contracts';
import type { EventNotice } from './event-notices.ts';
import type { Task } from './task.ts';

/** What is told of a settlement when it is decided. */
export function noticeOf<Tx>(
  consumer: string,
  task: Task,
  settlement: Settlement<Tx>,
  now: number,
): EventNotice {
  const { id, key, topic, attempt } = task;
  const of = { consumer, topic, at: now, id, key, attempt };
  const tookMs = now - task.startedAt;
  switch (settlement.kind) {
    case 'ack':
      return { ...of, type: 'succeeded', tookMs };
    case 'retry': {
      const { delayMs, error, story } = settlement;
      return { ...of, type: 'retry', because: story.at(-1)?.class ?? 'transient', delayMs, tookMs, error };
    }
    case 'snooze':
      return { ...of, type: 'snoozed', delayMs: settlement.delayMs };
    case 'return':
      return { ...of, type: 'returned', ...(task.returnedFor && { error: task.returnedFor }) };
    case 'park':
      return { ...of, type: 'parked', stop: settlement.stop, error: settlement.error };
    case 'discard':
      return { ...of, type: 'discarded', because: settlement.because };
    case 'reroute':
      return { ...of, type: 'rerouted', because: settlement.to };
  }
}
