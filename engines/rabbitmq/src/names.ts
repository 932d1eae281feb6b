import { createHash } from 'node:crypto';
import type { QueueName } from '@holdfast/contracts/carrier';

/** AMQP allows names of at most 255 bytes. This leaves room for the suffix `.retry`. */
const nameBytesMax = 240;
/** A routing key has at most 255 bytes. About 40 of them are the digits of the delay before the topic. */
const tokenBytesMax = 200;

/**
 * Names queues and exchanges. The queue of a topic is named like the topic; characters that would clash are
 * encoded.
 */
export class Names {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The queue that stores the names of all topics, because AMQP cannot list queues. */
  get register(): string {
    return `${this.#prefix}.topics`;
  }

  /** The queue that serves as a lock: it exists while a process reads or writes the names of the topics. */
  get lock(): string {
    return `${this.#prefix}.topics.lock`;
  }

  queue(topic: string, queue: QueueName): string {
    const name = this.#hot(topic);
    return queue === 'hot' ? name : `${name}.retry`;
  }

  /**
   * The name of the exchange and of the queue of a delay level. Level −1 is the exchange for messages that
   * are due.
   */
  level(level: number): string {
    return level < 0 ? `${this.#prefix}.due` : `${this.#prefix}.delay.${level}`;
  }

  /** Encodes the topic as one word of a routing key, where `.`, `*` and `#` have a special meaning. */
  token(topic: string): string {
    return shortened(
      topic.toWellFormed().replace(/[.*#%]/g, (character) => encodeCharacter(character)),
      tokenBytesMax,
    );
  }

  /**
   * Encodes a topic, so that its queue never shares a name with another topic's queue, a retry queue or our
   * own queues.
   */
  #hot(topic: string): string {
    let name = topic.toWellFormed().replaceAll('%', '%25');
    if (name.startsWith('amq.') || name.startsWith(`${this.#prefix}.`))
      name = encodeCharacter(name[0]!) + name.slice(1);
    if (name.endsWith('.retry')) name = `${name.slice(0, -'.retry'.length)}%2eretry`;
    return shortened(name, nameBytesMax);
  }
}

function encodeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16)}`;
}

/**
 * Returns the text if it has at most `bytesMax` bytes. Otherwise returns its beginning and a hash of the
 * whole text.
 */
export function shortened(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 32);
  const start = new TextDecoder()
    .decode(Buffer.from(text).subarray(0, bytesMax - 40))
    .replace(/\ufffd+$/, '');
  return `${start}%~${hash}`;
}
