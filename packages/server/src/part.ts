import { OptionsError } from 'holdfast';
import { ClientGoneError, type Exchange } from './exchange.ts';
import type { NodeExchange } from './node/node-exchange.ts';
import type { PlainResponse } from './response.ts';

/** The order in which parts act, outermost first. The order changes what they mean, so the user's list does not decide it. */
const order = ['health', 'deadline', 'rateLimit', 'degrade', 'shed', 'bulkhead', 'idempotency'] as const;

export type PartName = (typeof order)[number];

/** One check before a handler. It may respond instead of the handler, or listen to what follows. */
export interface Part {
  readonly name: PartName;
  /** Set where the part has to read the request's body: at most this many bytes of it. */
  readonly bodyMax?: number | undefined;
  /** `undefined` lets the request pass. Gives a promise only where the part has to wait. */
  enter(exchange: Exchange): PlainResponse | undefined | Promise<PlainResponse | undefined>;
  /**
   * The same decision without an exchange. True: the request passes, and the part does not need to know how it ends.
   * False: nothing was counted, and `enter` has to decide.
   */
  readonly tryFastPath?: ((request: FastPathRequest) => boolean) | undefined;
}

/** What is known of a request before an exchange is made for it. */
export type FastPathRequest = Pick<Exchange, 'peer' | 'route'>;

/**
 * The parts in the order in which they act. Each is copied into an object without getters: V8 keeps an object literal
 * with getters in a hash table, where every lookup is slow.
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

/** Enters the parts in order, synchronously while none of them waits. `undefined`: all let the request pass. */
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

/** Enters the parts, then calls `next` or sends the response of a part. `failed` gets the error that a part threw. */
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
        // The client disconnected while its body was read: no response can be sent, and no handler has failed.
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
  // The client may have disconnected while a part waited.
  if (exchange.isAbandoned) return;
  if (response) exchange.refuse(response, failed);
  else {
    exchange.prepare();
    exchange.runInContext(next);
  }
}
