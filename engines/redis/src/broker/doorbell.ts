import type { RedisClient } from '../script-runner.ts';

/**
 * Calls listeners when a notification is published to the Redis channel of their topic. It uses a separate
 * connection.
 */
export class Doorbell {
  readonly #client: RedisClient;
  readonly #onError: (error: Error) => void;
  readonly #listeners = new Map<string, Set<() => void>>();
  #subscriber: RedisClient | undefined;

  constructor(client: RedisClient, onError: (error: Error) => void) {
    this.#client = client;
    this.#onError = onError;
  }

  listen(channel: string, ring: () => void): () => void {
    // Wrap the function, so that the set can contain the same function twice.
    const listener = () => ring();
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    if (listeners.size === 1) this.#subscribe(channel);
    return () => {
      if (!listeners.delete(listener) || listeners.size > 0) return;
      this.#listeners.delete(channel);
      this.#subscriber?.unsubscribe(channel).catch(this.#onError);
    };
  }

  close(): void {
    this.#listeners.clear();
    this.#subscriber?.disconnect();
  }

  #subscribe(channel: string): void {
    this.#subscriber ??= this.#connect();
    this.#subscriber.subscribe(channel).then(
      // An event may have become due before the subscription started, so call the listeners once.
      () => this.#ring(channel),
      this.#onError,
    );
  }

  #connect(): RedisClient {
    // TypeScript cannot call `duplicate` of the union of `Redis` and `Cluster`.
    const client = this.#client as { duplicate(): RedisClient };
    const subscriber = client.duplicate();
    subscriber.on('error', this.#onError);
    subscriber.on('message', (channel: string) => this.#ring(channel));
    // Notifications may have been missed before a reconnect, so call all listeners.
    subscriber.on('ready', () => {
      for (const channel of this.#listeners.keys()) this.#ring(channel);
    });
    return subscriber;
  }

  #ring(channel: string): void {
    for (const listener of this.#listeners.get(channel) ?? []) listener();
  }
}
