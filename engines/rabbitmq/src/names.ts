import { createHash } from 'node:crypto';
import type { QueueName } from '@holdfast/contracts/carrier';

/** AMQP takes names of at most 255 bytes. This leaves room for `.retry`. */
const nameBytesMax = 240;
/** The routing key of a delay has 40 bytes of levels before this. */
const tokenBytesMax = 200;

/** The names of queues and exchanges. The queue of a topic has the name of the topic, where RabbitMQ takes it. */
export class Names {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The queue that holds the names of all topics: AMQP cannot list queues. */
  get register(): string {
    return `${this.#prefix}.topics`;
  }

  /** Exists while a process writes or reads the names. */
  get lock(): string {
    return `${this.#prefix}.topics.lock`;
  }

  queue(topic: string, queue: QueueName): string {
    const name = this.#hot(topic);
    return queue === 'hot' ? name : `${name}.retry`;
  }

  /** The exchange and the queue of one level of the delays. Below the last level is the exchange of what is due. */
  level(level: number): string {
    return level < 0 ? `${this.#prefix}.due` : `${this.#prefix}.delay.${level}`;
  }

  /** The topic as one word of a routing key. */
  token(topic: string): string {
    return shortened(
      topic.toWellFormed().replace(/[.*#%]/g, (character) => encodeCharacter(character)),
      tokenBytesMax,
    );
  }

  /** No two topics have the same queue, and none has the queue of another topic's retries, or one of ours. */
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

/** A text that fits, or its beginning and a hash of all of it. */
export function shortened(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 32);
  const start = new TextDecoder()
    .decode(Buffer.from(text).subarray(0, bytesMax - 40))
    .replace(/\ufffd+$/, '');
  return `${start}%~${hash}`;
}
