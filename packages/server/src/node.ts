import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, systemClock } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import { exchangeIn } from './exchange.ts';
import { goThrough } from './go-through.ts';
import { sendAnswer } from './node/held-response.ts';
import { NodeExchange } from './node/node-exchange.ts';
import { inOrder, type Part } from './part.ts';

export { contextOf } from './exchange.ts';
export { sendAnswer } from './node/held-response.ts';

export type NodeHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

export interface NodeGuardOptions {
  readonly clock?: Clock | undefined;
  /** Hears of what a function of yours threw inside a part; the client gets a 500. Without it, the process warns. */
  readonly onError?: ((error: unknown, request: IncomingMessage) => void) | undefined;
}

const known: Readonly<Record<keyof NodeGuardOptions, true>> = { clock: true, onError: true };

/** A handler for `http.createServer`, behind parts. */
export function guard(
  parts: readonly Part[],
  handler: NodeHandler,
  options: NodeGuardOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const ordered = inOrder(parts);
  refuseUnknown(known, options, 'guard.');
  const { clock = systemClock, onError = warn } = options;
  return (request, response) => {
    const made = exchangeIn(request) as NodeExchange | undefined;
    const exchange = made ?? new NodeExchange(request, response, clock);
    goThrough(
      ordered,
      exchange,
      () => handler(request, response),
      (error) => {
        sendAnswer(response, { status: 500, headers: {}, body: null });
        onError(error, request);
      },
    );
  };
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : new Error(String(error)));
}
