import { createHash } from 'node:crypto';
import type { QueueName } from '@holdfast/contracts/carrier';

const retrySuffix = '-retry';
const fifoSuffix = '.fifo';

/** SQS allows queue names of at most this many characters, including `.fifo`. */
export const nameLengthMax = 80;

/**
 * Names queues. The topic `orders` has the queues `orders` and `orders-retry`; with key order it has the
 * queue `orders.fifo`. SQS allows letters, digits, hyphens and underscores. So a dot is written as two
 * underscores, and any other character as `_x` and the hex of its bytes.
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

  /** Returns the topic whose `hot` queue (for first attempts) has this name, or `undefined`. */
  topicOf(name: string): string | undefined {
    const plain = name.endsWith(fifoSuffix) ? name.slice(0, -fifoSuffix.length) : name;
    if (!plain.startsWith(this.#prefix) || plain.endsWith(retrySuffix)) return undefined;
    return topicIn(plain.slice(this.#prefix.length));
  }
}

/**
 * Matches the characters to encode. An underscore is kept, unless it could be read as the start of an encoded
 * character.
 */
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

/**
 * SQS allows group and deduplication ids of at most 128 ASCII characters. Keys can be longer, so their hash
 * is used.
 */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
