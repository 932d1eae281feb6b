import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, systemClock } from 'holdfast';
import { callback, readTable } from 'holdfast/fields';
import { attachedExchange } from './exchange.ts';
import { sendResponse } from './node/held-response.ts';
import { NodeExchange } from './node/node-exchange.ts';
import { clockField } from './option-fields.ts';
import { assertHandler, orderParts, type Part, runParts } from './part.ts';

export { contextOf } from './exchange.ts';
export { sendResponse } from './node/held-response.ts';

/** A handler of `node:http`, which may return a promise. */
export type NodeHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

/** The options of `guard` for `node:http`. */
export interface NodeGuardOptions {
  /** The clock for deadlines and delays. Default: the system's. */
  readonly clock?: Clock | undefined;
  /**
   * Called when the handler, or a function in the options of a part, throws or rejects. The client gets a
   * 500. Default: emits a process warning with the stack of the error, the method and the path.
   */
  readonly onError?: ((error: unknown, request: IncomingMessage) => void) | undefined;
}

const fields = { clock: clockField, onError: callback<NonNullable<NodeGuardOptions['onError']>>() };

/**
 * Creates a handler for `http.createServer`. It runs the parts (checks such as `rateLimit()`) first, and then
 * `handler`.
 */
export function guard(
  parts: readonly Part[],
  handler: NodeHandler,
  options: NodeGuardOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const ordered = orderParts(parts);
  assertHandler(handler, 'guard.handler');
  const { clock = systemClock, onError = warn } = readTable(fields, options, 'guard.');
  return (request, response) => {
    const made = attachedExchange(request) as NodeExchange | undefined;
    const exchange = made ?? new NodeExchange(request, response, clock);
    const failed = (error: unknown) => {
      // A part of the response is already sent. The closed connection tells the client that the response is
      // incomplete.
      if (response.headersSent) response.destroy();
      else sendResponse(response, { status: 500, headers: {}, body: null });
      onError(error, request);
    };
    runParts(ordered, exchange, () => call(handler, request, response, failed), failed);
  };
}

/** Without this catch, an error of the handler would end the process. */
function call(
  handler: NodeHandler,
  request: IncomingMessage,
  response: ServerResponse,
  failed: (error: unknown) => void,
): void {
  try {
    const result = handler(request, response);
    if (result instanceof Promise) result.catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** The warning has no query, no headers and no body, because they may contain secrets. */
function warn(error: unknown, { method, url = '' }: IncomingMessage): void {
  const detail = stackOf(error);
  process.emitWarning(`${method} ${pathOf(url)} failed`, { type: 'HoldfastWarning', detail });
}

/** A proxy sends whole URLs, which may contain a password. */
function pathOf(url: string): string {
  const path = url.startsWith('/') ? url : URL.canParse(url) ? new URL(url).pathname : '';
  return path.replace(/[?#].*/s, '');
}

/** How many causes of an error are shown. An error may be its own cause. */
const causesMax = 5;

function stackOf(error: unknown, causesLeft = causesMax): string {
  if (!(error instanceof Error)) return String(error);
  const { stack = String(error), cause } = error;
  const hasCause = cause instanceof Error && causesLeft > 0;
  return hasCause ? `${stack}\nCaused by: ${stackOf(cause, causesLeft - 1)}` : stack;
}
