import type { Names } from './names.ts';

const stepMs = 100;
const levelCount = 20;
const stepsMax = 2 ** levelCount - 1;

/**
 * The longest delay, about 29 hours. A message with a longer delay arrives early, and is sent through the
 * levels again.
 */
export const delayMaxMs = stepMs * stepsMax;

export interface Level {
  readonly name: string;
  readonly queueArguments: object;
  /** The exchange of the next shorter level. */
  readonly below: string;
  /** Messages that match `stops` wait at this level. Messages that match `passes` skip it. */
  readonly stops: string;
  readonly passes: string;
}

/**
 * Builds any delay from queues with fixed delays, so that no message blocks a later one. The queue of level n
 * keeps a message for 100 ms × 2^n, then passes it to the next shorter level. The routing key is the delay in
 * binary digits: 1 means wait at that level, 0 means skip it.
 */
export class Ladder {
  readonly #names: Names;
  readonly #queueArguments: object;

  constructor(names: Names, queueArguments: object) {
    this.#names = names;
    this.#queueArguments = queueArguments;
  }

  /** The exchange for messages whose delay is over. */
  get due(): string {
    return this.#names.level(-1);
  }

  /** The levels, with the shortest delay first. Each level has an exchange and a queue of the same name. */
  levels(): Level[] {
    return Array.from({ length: levelCount }, (_, level) => {
      const below = this.#names.level(level - 1);
      const above = '*.'.repeat(levelCount - 1 - level);
      const queueArguments = {
        ...this.#queueArguments,
        'x-message-ttl': stepMs * 2 ** level,
        'x-dead-letter-exchange': below,
        // The server deletes a message from this level only after the next level has stored it.
        'x-dead-letter-strategy': 'at-least-once',
        'x-overflow': 'reject-publish',
      };
      const bindings = { stops: `${above}1.#`, passes: `${above}0.#` };
      return { name: this.#names.level(level), below, queueArguments, ...bindings };
    });
  }

  /**
   * The binding of the retry queue of `topic`: the queue gets the messages of the topic whose delay is over.
   */
  end(topic: string): { readonly exchange: string; readonly key: string } {
    return { exchange: this.due, key: `${'*.'.repeat(levelCount)}${this.#names.token(topic)}` };
  }

  /**
   * Where to publish a message so that the retry queue of `topic` gets it after `delayMs`, rounded up to 100
   * ms.
   */
  route(topic: string, delayMs: number): { readonly exchange: string; readonly routingKey: string } {
    const steps = Math.min(Math.ceil(delayMs / stepMs), stepsMax);
    const digits = steps.toString(2);
    const path = digits.padStart(levelCount, '0').split('').join('.');
    return {
      exchange: this.#names.level(digits.length - 1),
      routingKey: `${path}.${this.#names.token(topic)}`,
    };
  }
}
