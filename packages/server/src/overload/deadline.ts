import { type Clock, type Duration, ExpiredError, type Priority, systemClock, Timer } from 'holdfast';
import { callback, duration, type FieldsOf } from 'holdfast/fields';
import { readRequest } from 'holdfast/wire';
import type { Peers } from '../address.ts';
import type { Exchange } from '../exchange.ts';
import { HeaderNames } from '../header-names.ts';
import { peersField, readOptions } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { problem } from '../problem.ts';
import 'holdfast/ambient';
import type { PartEnvironment } from '../part-environment.ts';

/**
 * The options of `deadline`. Without options, a request ends after 30 s, or earlier if its header says so.
 */
export interface DeadlineOptions {
  /**
   * The longest time for a request. It is also the time for requests without a timeout header. Default:
   * `30s`.
   */
  timeout?: Duration | 'unlimited' | undefined;
  /**
   * A request that has only this much time left when it arrives, or less, is refused at once. Default: `0ms`.
   */
  least?: Duration | undefined;
  /**
   * The addresses of trusted callers, such as `peers('10.0.0.0/8')`. Only their header `Holdfast` can set a
   * priority. Default: none.
   */
  inside?: Peers | undefined;
  /**
   * Returns the priority of a request. `undefined`: the priority in the header is used, or `default`.
   * Default: the header's.
   */
  priority?: ((exchange: Exchange) => Priority | undefined) | undefined;
}

export const deadlineFields = {
  timeout: duration('30s', { unlimited: Infinity }),
  least: duration('0ms'),
  inside: peersField,
  priority: callback<(exchange: Exchange) => Priority | undefined>(),
} satisfies FieldsOf<DeadlineOptions>;

/** How many requests ended at their deadline: on arrival, and in the handler. */
export interface DeadlineCounts {
  /** Requests that had no time left when they arrived. The handler was not called. */
  onArrival: number;
  /** Requests whose time ended before the handler responded. */
  inHandler: number;
}

/** Ends requests at their deadline, because the client does not wait longer. */
export interface DeadlinePart extends Part {
  readonly counts: DeadlineCounts;
}

const spent = problem('patience-spent');
const tooSlow = problem('too-slow');

const deadlineHeaders = new HeaderNames(
  'holdfast',
  'x-request-timeout-ms',
  'grpc-timeout',
  'x-envoy-expected-rq-timeout-ms',
);

/** Most requests end within this time (ms), so they share one timer. */
const recentMs = 5;

/**
 * A part for `guard` that ends a request at its deadline. A request header can only shorten `timeout`.
 * Outgoing calls of the handler inherit the deadline.
 */
export function deadline(options: DeadlineOptions = {}, environment: PartEnvironment = {}): DeadlinePart {
  const { timeout, least, inside, priority } = readOptions(
    deadlineFields,
    options,
    'deadline',
    "{ timeout: '3s' }",
  );
  const { clock = systemClock } = environment;
  const counts: DeadlineCounts = { onArrival: 0, inHandler: 0 };
  const recent = new RecentExchanges(clock, counts);
  return {
    name: 'deadline',
    counts,
    enter(exchange) {
      let patienceMs = timeout;
      if (exchange.mayHaveHeader(deadlineHeaders)) {
        const header = readRequest(exchange.headers);
        patienceMs = Math.min(timeout, header.patienceMs ?? readTimeout(exchange) ?? Infinity);
        exchange.attempt = header.attempt;
        exchange.ownedUpstream = header.owner === true;
        // Any client could send the priority `critical`, so it is read only from trusted callers.
        if (header.priority && inside?.has(exchange.peer)) exchange.priority = header.priority;
      }
      const given = priority?.(exchange);
      if (given) exchange.priority = given;
      if (patienceMs <= least) {
        counts.onArrival++;
        return spent;
      }

      if (patienceMs < Infinity) {
        const now = exchange.nowOf(clock);
        // Another `guard` around this one may have set an earlier deadline.
        exchange.patienceEndsAt = Math.min(exchange.patienceEndsAt, now + patienceMs);
        if (patienceMs > 2 * recentMs) recent.add(exchange, now);
        else watch(clock, exchange, counts);
      }
      exchange.isAmbient = true;
      return undefined;
    },
  };
}

function readTimeout(exchange: Exchange): number | undefined {
  const text = exchange.header('x-request-timeout-ms') ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function watch(clock: Clock, exchange: Exchange, counts: DeadlineCounts): void {
  const since = exchange.clock.now();
  const timer = new Timer(clock, () => {
    const limitMs = exchange.patienceEndsAt - since;
    counts.inHandler++;
    exchange.expire(tooSlow, new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the request', limitMs, undefined));
  });
  timer.setAt(exchange.patienceEndsAt);
  exchange.onEnd(() => timer.clear());
}

/** Has one timer for all requests of the last 5 ms. A request that takes longer gets its own timer. */
class RecentExchanges {
  readonly #clock: Clock;
  readonly #counts: DeadlineCounts;
  readonly #timer: Timer;
  #exchanges: Exchange[] = [];

  constructor(clock: Clock, counts: DeadlineCounts) {
    this.#clock = clock;
    this.#counts = counts;
    this.#timer = new Timer(clock, () => this.#watchPending());
  }

  add(exchange: Exchange, now: number): void {
    this.#exchanges.push(exchange);
    if (!this.#timer.isSet) this.#timer.setAt(now + recentMs);
  }

  #watchPending(): void {
    const exchanges = this.#exchanges;
    this.#exchanges = [];
    for (const exchange of exchanges) if (!exchange.isAnswered) watch(this.#clock, exchange, this.#counts);
  }
}
