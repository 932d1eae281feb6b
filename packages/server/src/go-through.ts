import type { Answer } from './answer.ts';
import type { NodeExchange } from './node-exchange.ts';
import { enterAll, type Part } from './part.ts';

/** Through the parts to `next`, or to an answer instead of it. `failed` hears of what a part threw. */
export function goThrough(
  ordered: readonly Part[],
  exchange: NodeExchange,
  next: () => unknown,
  failed: (error: unknown) => void,
): void {
  const go = (answer: Answer | undefined) => {
    // The client has left while a part waited: there is nobody to answer, and no reason to begin.
    if (exchange.isOver) return;
    if (answer) exchange.refuse(answer);
    else {
      exchange.prepare();
      exchange.around(next);
    }
  };
  let answer: Answer | undefined | Promise<Answer | undefined>;
  try {
    answer = enterAll(ordered, exchange);
  } catch (error) {
    failed(error);
    return;
  }
  if (answer instanceof Promise) answer.then(go, failed);
  else go(answer);
}
