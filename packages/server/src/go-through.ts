import { ClientGoneError } from './exchange.ts';
import type { NodeExchange } from './node/node-exchange.ts';
import { enterAll, type Part } from './part.ts';
import type { Answer } from './response.ts';

/** Through the parts to `next`, or to an answer instead of it. `failed` hears of what a part threw. */
export function goThrough(
  ordered: readonly Part[],
  exchange: NodeExchange,
  next: () => unknown,
  failed: (error: unknown) => void,
): void {
  let answer: Answer | undefined | Promise<Answer | undefined>;
  try {
    answer = enterAll(ordered, exchange);
  } catch (error) {
    failed(error);
    return;
  }
  if (!(answer instanceof Promise)) goOn(exchange, answer, next, failed);
  else {
    answer.then(
      (late) => goOn(exchange, late, next, failed),
      (error: unknown) => {
        // There is nobody to answer, and nothing that was to be done has failed.
        if (!(error instanceof ClientGoneError)) failed(error);
      },
    );
  }
}

function goOn(
  exchange: NodeExchange,
  answer: Answer | undefined,
  next: () => unknown,
  failed: (error: unknown) => void,
): void {
  // The client has disconnected while a part waited.
  if (exchange.isAbandoned) return;
  if (answer) exchange.refuse(answer, failed);
  else {
    exchange.prepare();
    exchange.around(next);
  }
}
