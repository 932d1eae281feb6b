import type { Names } from './names.ts';

const stepMs = 100;
const levelCount = 20;
const stepsMax = 2 ** levelCount - 1;

/** The longest delay, some 29 hours. A message with a longer one comes early, and is sent through the levels again. */
export const delayMaxMs = stepMs * stepsMax;

export interface Level {
  readonly name: string;
  readonly queueArguments: object;
  /** The exchange of the next level. */
  readonly below: string;
  /** The routing keys of messages that wait at this level, and of those that go on to the next one. */
  readonly stops: string;
  readonly passes: string;
}

/**
 * Delays of any length from queues with a fixed time each: level n holds a message for 100 ms × 2^n, then dead-letters it to
 * the levels below. The routing key says at which levels a message stops: its delay as a binary number. All messages of
 * a level wait for the same time, so none blocks one behind it.
 */
export class Ladder {
  readonly #names: Names;
  readonly #queueArguments: object;

  constructor(names: Names, queueArguments: object) {
    this.#names = names;
    this.#queueArguments = queueArguments;
  }

  /** The exchange of what is due. */
  get due(): string {
    return this.#names.level(-1);
  }

  /** The levels, the shortest first. Each has an exchange and a queue of the same name. */
  levels(): Level[] {
    return Array.from({ length: levelCount }, (_, level) => {
      const below = this.#names.level(level - 1);
      const above = '*.'.repeat(levelCount - 1 - level);
      const queueArguments = {
        ...this.#queueArguments,
        'x-message-ttl': stepMs * 2 ** level,
        'x-dead-letter-exchange': below,
        // A message leaves a level when the next one has it.
        'x-dead-letter-strategy': 'at-least-once',
        'x-overflow': 'reject-publish',
      };
      const bindings = { stops: `${above}1.#`, passes: `${above}0.#` };
      return { name: this.#names.level(level), below, queueArguments, ...bindings };
    });
  }

  /** The binding of a retry queue: messages for `topic` that are due. */
  end(topic: string): { readonly exchange: string; readonly key: string } {
    return { exchange: this.due, key: `${'*.'.repeat(levelCount)}${this.#names.token(topic)}` };
  }

  /** Where to publish a message, so that it is in the retry queue of `topic` after `delayMs`, rounded up to 100 ms. */
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
