import { OptionsError } from 'holdfast';
import { ClientGoneError, type Exchange } from './exchange.ts';
import type { NodeExchange } from './node/node-exchange.ts';
import type { PlainResponse } from './response.ts';

/**
 * The order in which the parts are entered. A different order would change their meaning, so the order of the user's
 * list is ignored.
 */
const order = ['health', 'deadline', 'rateLimit', 'degrade', 'shed', 'bulkhead', 'idempotency'] as const;

export type PartName = (typeof order)[number];

/**
 * One check that runs before a handler, such as `rateLimit()`. It may respond instead of the handler, or watch how the
 * request ends.
 */
export interface Part {
  readonly name: PartName;
  /** Set if the part reads the request's body: the most bytes that it reads. */
  readonly bodyMax?: number | undefined;
  /**
   * Decides about a request. `undefined` lets the request pass; a response is sent instead of calling the handler. It
   * returns a promise only if it has to wait.
   */
  enter(exchange: Exchange): PlainResponse | undefined | Promise<PlainResponse | undefined>;
  /**
   * Makes the same decision as `enter`, but cheaper, without an Exchange object. True: the request passes, and the part
   * does not need to know how it ends. False: nothing was counted, and `enter` must be called.
   */
  readonly tryFastPath?: ((request: FastPathRequest) => boolean) | undefined;
}

/** What is known about a request before an Exchange object is made for it. */
export type FastPathRequest = Pick<Exchange, 'peer' | 'route'>;

/**
 * Validates the parts and sorts them into the order in which they are entered. Each is copied into an object without
 * getters, because V8 (the JavaScript engine of Node) stores an object literal with getters in a hash table, where
 * every lookup is slow.
 */
export function orderParts(parts: readonly Part[]): readonly Part[] {
  if (!Array.isArray(parts)) throw new OptionsError('parts', parts, 'a list of parts');
  parts.forEach((part: Part, index) => {
    if (typeof part?.enter === 'function' && order.includes(part.name)) return;
    throw new OptionsError(`parts[${index}]`, part, 'a part such as rateLimit()');
  });
  return parts
    .toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name))
    .map((part) => {
      const { name, bodyMax } = part;
      return { name, bodyMax, enter: part.enter.bind(part), tryFastPath: part.tryFastPath?.bind(part) };
    });
}

/**
 * Enters the parts in order, starting at index `from`. It is synchronous unless a part returns a promise. Returns the
 * first response of a part; `undefined` if all parts let the request pass.
 */
export function enterAll(
  parts: readonly Part[],
  exchange: Exchange,
  from = 0,
): PlainResponse | undefined | Promise<PlainResponse | undefined> {
  exchange.beginPass();
  for (let index = from; index < parts.length; index++) {
    const entered = parts[index]!.enter(exchange);
    if (entered === undefined) continue;
    if (entered instanceof Promise) {
      if (index + 1 === parts.length) return entered;
      return entered.then((response) => response ?? enterAll(parts, exchange, index + 1));
    }
    return entered;
  }
  return undefined;
}

/**
 * Enters the parts. Then calls `next`, or sends the response of the part that refused. `failed` is called with an error
 * that a part threw.
 */
export function runParts(
  ordered: readonly Part[],
  exchange: NodeExchange,
  next: () => unknown,
  failed: (error: unknown) => void,
): void {
  let entered: ReturnType<typeof enterAll>;
  try {
    entered = enterAll(ordered, exchange);
  } catch (error) {
    failed(error);
    return;
  }
  if (!(entered instanceof Promise)) handOver(exchange, entered, next, failed);
  else {
    entered.then(
      (response) => handOver(exchange, response, next, failed),
      (error: unknown) => {
        // The client disconnected while its body was read. No response can be sent, and this is not an error of the
        // server.
        if (!(error instanceof ClientGoneError)) failed(error);
      },
    );
  }
}

function handOver(
  exchange: NodeExchange,
  response: PlainResponse | undefined,
  next: () => unknown,
  failed: (error: unknown) => void,
): void {
  if (exchange.isAbandoned) return;
  if (response) exchange.refuse(response, failed);
  else {
    exchange.prepare();
    exchange.runInContext(next);
  }
}
