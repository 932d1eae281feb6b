import { createHash } from 'node:crypto';
import type { QueueName } from '@holdfast/contracts/carrier';

const retrySuffix = '-retry';
const fifoSuffix = '.fifo';

/** SQS allows this many characters, `.fifo` included. */
export const nameLengthMax = 80;

/**
 * The names of queues. Topic `orders` has the queues `orders` and `orders-retry`, with key order the queue `orders.fifo`.
 * SQS takes letters, digits, hyphens and low lines. So a dot is written as two low lines, and any other character as the
 * hex of its bytes.
 */
export class QueueNames {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  get prefix(): string {
    return this.#prefix;
  }

  nameOf(topic: string, queue: QueueName, isFifo = false): string {
    const name = this.#prefix + tokenOf(topic) + (queue === 'retry' ? retrySuffix : '');
    return isFifo ? name + fifoSuffix : name;
  }

  /** Returns the topic whose `hot` queue has this name, or `undefined`. */
  topicOf(name: string): string | undefined {
    const plain = name.endsWith(fifoSuffix) ? name.slice(0, -fifoSuffix.length) : name;
    if (!plain.startsWith(this.#prefix) || plain.endsWith(retrySuffix)) return undefined;
    return topicIn(plain.slice(this.#prefix.length));
  }
}

/** A low line stays, unless it could be read as the start of another sign. */
const odd = /\.|_(?!(?:[A-Za-wyz0-9]|-(?!retry$))|$)|[^A-Za-z0-9_-]|-(?=retry$)/gu;

function tokenOf(topic: string): string {
  return topic.replace(odd, (sign) =>
    sign === '.'
      ? '__'
      : Array.from(Buffer.from(sign), (byte) => `_x${byte.toString(16).padStart(2, '0')}`).join(''),
  );
}

function topicIn(token: string): string {
  const escaped = token.replace(/__|_x([0-9a-f]{2})/g, (sign, byte) => (sign === '__' ? '.' : `%${byte}`));
  try {
    return decodeURIComponent(escaped);
  } catch {
    return token;
  }
}

/** Group and deduplication ids have at most 128 ASCII characters. A hash keeps keys of any length and script apart. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
