import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, systemClock } from 'holdfast';
import { callback, readTable } from 'holdfast/fields';
import { attachedExchange } from './exchange.ts';
import { sendResponse } from './node/held-response.ts';
import { NodeExchange } from './node/node-exchange.ts';
import { clockField } from './option-fields.ts';
import { orderParts, type Part, runParts } from './part.ts';

export { contextOf } from './exchange.ts';
export { sendResponse } from './node/held-response.ts';

export type NodeHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

export interface NodeGuardOptions {
  readonly clock?: Clock | undefined;
  /**
   * Called with the error that a function of the user threw inside a part. The client gets a 500. Without `onError`, a
   * process warning is emitted.
   */
  readonly onError?: ((error: unknown, request: IncomingMessage) => void) | undefined;
}

const fields = { clock: clockField, onError: callback<NonNullable<NodeGuardOptions['onError']>>() };

/**
 * Makes a handler for `http.createServer`. It enters the parts (checks such as `rateLimit()`) first, and then calls
 * `handler`.
 */
export function guard(
  parts: readonly Part[],
  handler: NodeHandler,
  options: NodeGuardOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const ordered = orderParts(parts);
  const { clock = systemClock, onError = warn } = readTable(fields, options, 'guard.');
  return (request, response) => {
    const made = attachedExchange(request) as NodeExchange | undefined;
    const exchange = made ?? new NodeExchange(request, response, clock);
    runParts(
      ordered,
      exchange,
      () => handler(request, response),
      (error) => {
        sendResponse(response, { status: 500, headers: {}, body: null });
        onError(error, request);
      },
    );
  };
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : new Error(String(error)));
}
