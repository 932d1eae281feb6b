import { OptionsError } from 'holdfast';
import { ClientGoneError, type Exchange } from './exchange.ts';
import type { NodeExchange } from './node/node-exchange.ts';
import type { PlainResponse } from './response.ts';

/** The order in which the parts run. The order of the user's list is ignored. */
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
  /** The most bytes of the request body that the part reads. `undefined`: it does not read the body. */
  readonly bodyMax?: number | undefined;
  /** Checks a request. `undefined`: the request passes. A response is sent, and the handler is not called. */
  enter(exchange: Exchange): PlainResponse | undefined | Promise<PlainResponse | undefined>;
  /**
   * A faster `enter`, without an `Exchange` object. True: the request passes. False: `enter` must be called.
   */
  readonly tryFastPath?: ((request: FastPathRequest) => boolean) | undefined;
}

/** The properties of a request that are known without an `Exchange` object. */
export type FastPathRequest = Pick<Exchange, 'peer' | 'route'>;

/** Validates the parts and returns sorted copies. The copies have no getters, so they are faster to read. */
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

/** Refuses `guard(parts)` without a handler at once. Otherwise, the first request would fail. */
export function assertHandler(handler: unknown, path: string): void {
  if (typeof handler !== 'function') throw new OptionsError(path, handler, 'a function as second argument');
}

/**
 * Runs the parts from index `from`, and returns the first response. It is synchronous unless a part returns a
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
        // The client disconnected while its body was read, which is no error of the server.
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
