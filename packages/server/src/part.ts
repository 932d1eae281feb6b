import { OptionsError } from 'holdfast';
import type { Exchange } from './exchange.ts';
import type { Answer } from './response.ts';

/** In which order parts act, outermost first. Order is semantics, so it is not left to the list. */
const order = ['health', 'deadline', 'rateLimit', 'degrade', 'shed', 'bulkhead', 'idempotency'] as const;

export type PartName = (typeof order)[number];

/** Something that stands before a handler. It may answer instead, or have an eye on what follows. */
export interface Part {
  readonly name: PartName;
  /** It has to see the body, up to so many bytes of it. */
  readonly bodyMax?: number | undefined;
  /** `undefined`: go on. A promise only where it has to wait. */
  enter(exchange: Exchange): Answer | undefined | Promise<Answer | undefined>;
  /**
   * The same for the plainest of requests, without an exchange: true where it passes, and the part has no interest in what
   * becomes of it. False where `enter` is to be asked: then nothing was counted.
   */
  readonly passes?: ((visit: Visit) => boolean) | undefined;
}

/** What can be told of a request at a glance. */
export type Visit = Pick<Exchange, 'peer' | 'route'>;

/**
 * The parts as they are asked, in their order. Each is an object of fields alone: parts have getters, and engines look up
 * everything in an object literal that has some in a hash table.
 */
export function inOrder(parts: readonly Part[]): readonly Part[] {
  if (!Array.isArray(parts)) throw new OptionsError('parts', parts, 'a list of parts');
  parts.forEach((part: Part, index) => {
    if (typeof part?.enter === 'function' && order.includes(part.name)) return;
    throw new OptionsError(`parts[${index}]`, part, 'a part such as rateLimit()');
  });
  return parts
    .toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name))
    .map((part) => {
      const { name, bodyMax } = part;
      return { name, bodyMax, enter: part.enter.bind(part), passes: part.passes?.bind(part) };
    });
}

/** Goes through the parts, in one go where none has to wait. `undefined`: the handler's turn. */
export function enterAll(
  parts: readonly Part[],
  exchange: Exchange,
  from = 0,
): Answer | undefined | Promise<Answer | undefined> {
  exchange.beginPass();
  for (let index = from; index < parts.length; index++) {
    const answer = parts[index]!.enter(exchange);
    if (answer === undefined) continue;
    if (answer instanceof Promise) {
      if (index + 1 === parts.length) return answer;
      return answer.then((late) => late ?? enterAll(parts, exchange, index + 1));
    }
    return answer;
  }
  return undefined;
}
