import type { RedisClient } from '../script-runner.ts';

/** Calls listeners when something is published to the channel of their topic. Uses a connection of its own. */
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
    // Each call has a function of its own, so that one listener can listen twice.
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
      // Something may have become due before the subscription.
      () => this.#ring(channel),
      this.#onError,
    );
  }

  #connect(): RedisClient {
    // The types of `Redis` and `Cluster` cannot be called as one.
    const client = this.#client as { duplicate(): RedisClient };
    const subscriber = client.duplicate();
    subscriber.on('error', this.#onError);
    subscriber.on('message', (channel: string) => this.#ring(channel));
    // After a reconnect: nobody knows what was missed.
    subscriber.on('ready', () => {
      for (const channel of this.#listeners.keys()) this.#ring(channel);
    });
    return subscriber;
  }

  #ring(channel: string): void {
    for (const listener of this.#listeners.get(channel) ?? []) listener();
  }
}
