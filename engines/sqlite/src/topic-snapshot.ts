import { TopicError } from '@holdfast/contracts';
import { firstAppointment } from './appointments.ts';
import type { ControlBoard, TopicControls } from './controls.ts';
import { firstTries, retries, suspects } from './ready-queue.ts';
import type { Store } from './store.ts';
import type { Time } from './store-clock.ts';
import { type Topic, toTopic } from './topics.ts';

export interface TopicSnapshot {
  readonly topic: Topic;
  readonly topicControls: TopicControls;
  readonly version: number;
  /** True: a lease or a control has expired, or an event has reached its wall-clock time. Call `catchUp`. */
  readonly needsCatchUp: boolean;
  readonly nextDueInMs: number | undefined;
  readonly suspects: number;
}

export function topicSnapshots(
  store: Store,
  board: ControlBoard,
): (name: string, time: Time) => TopicSnapshot {
  const firstDue = (which: number) => `(
    SELECT due_at FROM holdfast_ready WHERE topic = topic.id AND queue = ${which} ORDER BY due_at LIMIT 1)`;
  // One statement reads everything, because each statement takes a lock.
  const look = store.prepare(`
    SELECT topic.*, controls_version, controls_end_at, is_releasing,
      ${firstDue(firstTries)} AS first_due_at, ${firstDue(retries)} AS retry_due_at,
      ${firstDue(suspects)} AS suspect_due_at, ${firstAppointment('topic.id')} AS appointed_at,
      (SELECT min(check_at) FROM holdfast_lease) AS check_at
    FROM holdfast_topic topic, holdfast_meta WHERE name = ?`);

  return (name, { now, wall }) => {
    const row = look.get(name);
    if (!row) throw new TopicError(name, 'was never declared');
    const { first_due_at, retry_due_at, suspect_due_at, appointed_at, check_at, controls_end_at } = row;
    const version = Number(row.controls_version);
    const topicControls = board.controlsFor(name, version);
    const { retriesArePaused } = topicControls;
    const retryMs = retriesArePaused ? Infinity : until(retry_due_at, now);
    const waitMs = Math.min(until(first_due_at, now), retryMs, until(appointed_at, wall));
    return {
      topic: toTopic(row),
      topicControls,
      version,
      needsCatchUp:
        until(check_at, now) <= 0 ||
        until(controls_end_at, now) <= 0 ||
        until(appointed_at, wall) <= 0 ||
        row.is_releasing === 1,
      nextDueInMs: waitMs === Infinity ? undefined : Math.max(0, waitMs),
      suspects: suspect_due_at === null || retriesArePaused ? 0 : 1,
    };
  };
}

function until(time: unknown, now: number): number {
  return time === null ? Infinity : Number(time) - now;
}
