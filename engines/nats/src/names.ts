import type { QueueName } from '@holdfast/contracts/carrier';

/** Names streams, subjects and consumers. A topic is encoded so that it is a single token of a subject. */
export class Names {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  stream(topic: string): string {
    return `${this.#prefix}_${tokenOf(topic)}`;
  }

  /** Returns the topic of a stream, or `undefined` if the stream is not ours. */
  topicOf(stream: string): string | undefined {
    const start = `${this.#prefix}_`;
    return stream.startsWith(start) ? textOf(stream.slice(start.length)) : undefined;
  }

  /**
   * The subject of a queue. The `hot` queue (for first attempts) has one subject for each partition; `*`
   * matches all of them.
   */
  subject(topic: string, queue: QueueName, partition: number | '*' = 0): string {
    const start = `${this.#prefix}.${tokenOf(topic)}`;
    return queue === 'hot' ? `${start}.hot.${partition}` : `${start}.retry`;
  }

  consumer(queue: QueueName, partition: number): string {
    return queue === 'hot' ? `hot_${partition}` : 'retry';
  }
}

const plain = /[^A-Za-z0-9-]/gu;

/**
 * Keeps letters, digits and hyphens. Writes each byte of another character as an underscore and two hex
 * digits.
 */
function tokenOf(topic: string): string {
  return topic.replace(plain, (character) =>
    Array.from(Buffer.from(character), (byte) => `_${byte.toString(16).padStart(2, '0')}`).join(''),
  );
}

function textOf(token: string): string {
  const bytes = token.replace(/_([0-9a-f]{2})/g, '%$1');
  try {
    return decodeURIComponent(bytes);
  } catch {
    return token;
  }
}

/** The partition of a key, by its FNV-1a hash. */
export function partitionOf(key: string, partitions: number): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % partitions;
}
