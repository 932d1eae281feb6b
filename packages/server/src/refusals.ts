import type { Random } from 'holdfast';
import { problem } from './problem.ts';
import type { Answer } from './response.ts';

/** Written once: a refusal must cost less than the work that it refuses. */
const answers: readonly Answer[] = ['1', '2', '3'].map((seconds) =>
  problem('temporary-reduced-capacity', { 'retry-after': seconds }),
);

/** No capacity: come back in one to three seconds. Nothing was processed. */
export function noCapacity(random: Random): Answer {
  return answers[Math.floor(random() * answers.length)]!;
}

/** For a client that has disconnected: nobody gets it. 499 is what nginx logs for such requests. */
export const clientGone: Answer = { status: 499, headers: {}, body: null };
