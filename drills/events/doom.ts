import type { Broker, Engine } from '@holdfast/contracts';
import type { BetweenWrites } from './open-broker.ts';
import { isBroker, type Place } from './place.ts';

/** Where processes die. `commit` is inside the transaction, as near to its end as can be told from here. */
export const publisherPoints = ['publish.commit', 'publish.after'] as const;
export const workerPoints = [
  ...['lease.commit', 'lease.after', 'handler.begun', 'handler.effect', 'settle.before', 'settle.effect'],
  ...['settle.commit', 'settle.after', 'extend.commit', 'extend.after'],
] as const;
/**
 * On a message broker, `settle.written` is after the marks or the retry are in the store, `lease.moved` after an event has
 * moved there, and the broker is not told yet. What puts the most at risk is first, for short trials.
 */
export const carrierPoints = [
  ...['settle.written', 'handler.effect', 'lease.moved', 'settle.commit', 'settle.after', 'lease.after'],
  ...['handler.begun', 'settle.before', 'lease.commit', 'extend.after'],
] as const;
/** Redis writes all of a settlement in one script. */
export const redisPoints = [
  ...['settle.commit', 'handler.effect', 'lease.after', 'settle.after', 'settle.before', 'handler.begun'],
  ...['lease.commit', 'extend.commit', 'extend.after'],
] as const;

const operations = ['publish', 'lease', 'settle', 'extend'] as const;
type Operation = (typeof operations)[number];

/** A server commits about this long after the request. */
const commitMaxMs = 3;

/** Kills this process the nth time that it passes a point. */
export class Doom {
  readonly #point: string;
  #passes: number;

  constructor(point: string, passes: number) {
    this.#point = point;
    this.#passes = passes;
  }

  at(point: string): void {
    if (point !== this.#point) return;
    this.#passes -= 1;
    if (this.#passes <= 0) process.kill(process.pid, 'SIGKILL');
  }
}

/** Calls that have been made and not been answered. */
export class UnderWay {
  readonly #counts: Record<Operation, number> = { publish: 0, lease: 0, settle: 0, extend: 0 };
  readonly #doom: Doom;

  constructor(doom: Doom) {
    this.#doom = doom;
  }

  /** A transaction is about to be committed: all that is under way is in it. */
  beforeCommit(): void {
    for (const operation of operations) {
      if (this.#counts[operation] > 0) this.#doom.at(`${operation}.commit`);
    }
  }

  /** The writes of an engine that has two places to write to. */
  get between(): BetweenWrites {
    return {
      onWritten: () => this.#counts.settle > 0 && this.#doom.at('settle.written'),
      onMoved: () => this.#doom.at('lease.moved'),
    };
  }

  async pass<T>(operation: Operation, call: () => Promise<T>, committing: boolean): Promise<T> {
    this.#counts[operation] += 1;
    const timer =
      committing && setTimeout(() => this.#doom.at(`${operation}.commit`), Math.random() * commitMaxMs);
    try {
      return await call();
    } finally {
      if (timer) clearTimeout(timer);
      this.#counts[operation] -= 1;
    }
  }
}

/** One call in this many gets no answer; half of those have taken effect. */
const lostAnswers = 0.01;

/** The engine as it is, on a way that is doomed at some point, and that loses answers. `onDone` gets ids of acknowledged events. */
export function doomed(
  engine: Required<Engine>,
  { engine: kind }: Place,
  doom: Doom,
  underWay: UnderWay,
  onDone: (ids: readonly string[]) => Promise<void> = async () => {},
) {
  // A server cannot tell us when it commits.
  const isRemote = kind !== 'sqlite';
  const { broker } = engine;

  function on<A extends unknown[], T>(operation: Operation, call: (...args: A) => Promise<T>) {
    return async (...args: A): Promise<T> => {
      doom.at(`${operation}.before`);
      const roll = Math.random();
      if (roll < lostAnswers / 2) throw new Error(`the drill refused to ${operation}`);
      const answer = await underWay.pass(operation, () => call(...args), isRemote);
      doom.at(`${operation}.after`);
      if (roll < lostAnswers) throw new Error(`the drill lost the answer of ${operation}`);
      return answer;
    };
  }

  const settle: Broker['settle'] = async (batch) => {
    const results = await broker.settle(batch);
    const done = batch.filter(({ kind }, index) => kind === 'ack' && results[index]!.took);
    await onDone(done.map(({ lease }) => lease.id));
    return results;
  };

  const wrapped: Broker = {
    ...broker,
    publish: on('publish', broker.publish),
    settle: on('settle', isBroker(kind) ? settle : broker.settle),
    extend: on('extend', broker.extend),
    async lease(topic, request) {
      const leased = await underWay.pass('lease', () => broker.lease(topic, request), isRemote);
      if (leased.deliveries.length > 0) doom.at('lease.after');
      return leased;
    },
  };
  return { ...engine, broker: wrapped };
}
