import type { Settlement } from './broker.ts';
import type { Diagnosis } from './envelope.ts';
import { messageMax } from './error-note.ts';

/**
 * Returns the record of why an event is parked (set aside for an operator). `attempts` is the number of
 * failed attempts before the last one.
 */
export function diagnosisOf(
  { error, stop, story, consumer }: Settlement & { kind: 'park' },
  attempts: number,
): Diagnosis {
  return {
    reason: error?.type ?? stop,
    message: (error?.message ?? '').slice(0, messageMax),
    stop,
    finalAttempt: attempts + 1,
    consumer,
    error,
    story,
  };
}
