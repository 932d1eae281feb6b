import { OptionsError } from 'holdfast';
import { ClientGoneError, type Exchange } from './exchange.ts';
import type { NodeExchange } from './node/node-exchange.ts';
import type { PlainResponse } from './response.ts';

/** The order in which the parts run. The order of the user's list is ignored, because another order would be wrong. */
const order = [
  'health',
  'deadline',
  'rateLimit',
  'degrade',
  'shed',
  'bulkhead',
  'packaging',
  'idempotency',
] as const;

/** The names of the parts, in the order in which they run. */
export type PartName = (typeof order)[number];

/** One check that runs before a handler, such as `rateLimit()`. It may respond instead of the handler. */
export interface Part {
  readonly name: PartName;
  /** The most bytes of the body that the part reads; undefined if it does not read the body. */
  readonly bodyMax?: number | undefined;
  /** Decides about a request. `undefined` lets it pass; a response is sent instead of calling the handler. */
  enter(exchange: Exchange): PlainResponse | undefined | Promise<PlainResponse | undefined>;
  /** A cheaper `enter`, without an Exchange object. True lets the request pass; on false, `enter` must be called. */
  readonly tryFastPath?: ((request: FastPathRequest) => boolean) | undefined;
}

/** What is known about a request without an Exchange object. */
export type FastPathRequest = Pick<Exchange, 'peer' | 'route'>;

/**
 * Validates and sorts the parts. It copies them without getters, because V8 (Node's JavaScript engine) reads objects
 * with getters slowly.
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
 * Runs the parts from index `from`, and returns the first response of a part. It is synchronous unless a part returns a
 * promise.
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

/** Runs the parts. Then calls `next`, or sends the response of the part that refused. */
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
        // The client disconnected while its body was read. This is not an error of the server.
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
