import type { Settlement } from '@holdfast/contracts';
import type { EventNotice } from './event-notices.ts';
import { stopAdvice } from './stop-advice.ts';
import type { Task } from './task.ts';

export function noticeOf<Tx>(
  consumer: string,
  task: Task,
  settlement: Settlement<Tx>,
  now: number,
): EventNotice {
  const { id, key, topic, attempt } = task;
  const header = { consumer, topic, at: now, id, key, attempt };
  const tookMs = now - task.startedAt;
  switch (settlement.kind) {
    case 'ack':
      return { ...header, type: 'succeeded', tookMs };
    case 'retry': {
      const { delayMs, error, story } = settlement;
      return {
        ...header,
        type: 'retry',
        because: story.at(-1)?.class ?? 'transient',
        delayMs,
        tookMs,
        error,
      };
    }
    case 'snooze':
      return { ...header, type: 'snoozed', delayMs: settlement.delayMs };
    case 'return':
      return { ...header, type: 'returned', ...(task.returnedFor && { error: task.returnedFor }) };
    case 'park': {
      const { stop, error } = settlement;
      const advice = stopAdvice(stop, error?.message);
      return { ...header, type: 'parked', stop, error, ...(advice !== undefined && { advice }) };
    }
    case 'discard':
      return { ...header, type: 'discarded', because: settlement.because };
    case 'reroute':
      return { ...header, type: 'rerouted', because: settlement.to };
  }
}
