import { type Clock, ExpiredError, systemClock, Timer } from 'holdfast';
import { callback, duration, readTable, type SpecOf } from 'holdfast/fields';
import { readRequest } from 'holdfast/wire';
import type { Exchange } from '../exchange.ts';
import { HeaderNames } from '../header-names.ts';
import { peersField } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { problem } from '../problem.ts';
import 'holdfast/ambient';

const fields = {
  timeout: duration('30s', { unlimited: Infinity }),
  least: duration('0ms'),
  inside: peersField,
  priority: callback<(exchange: Exchange) => Exchange['priority'] | undefined>(),
};

export type DeadlineOptions = SpecOf<typeof fields>;

const spent = problem('patience-spent');
const tooSlow = problem('too-slow');

const deadlineHeaders = new HeaderNames(
  'holdfast',
  'x-request-timeout-ms',
  'grpc-timeout',
  'x-envoy-expected-rq-timeout-ms',
);

/** Most requests end within this time, and never need a timer of their own. */
const recentMs = 5;

/**
 * Makes a part that ends a request when its client will not wait longer. `timeout` is the default and the maximum;
 * headers of the request can only shorten it. The handler runs inside an ambient context (in AsyncLocalStorage), from
 * which its outgoing calls, for example with `@holdfast/http`, inherit deadline, signal, and whether the caller
 * retries.
 */
export function deadline(
  options: DeadlineOptions = {},
  environment: { readonly clock?: Clock | undefined } = {},
): Part {
  const { timeout, least, inside, priority } = readTable(fields, options, 'deadline.');
  const { clock = systemClock } = environment;
  const recent = new RecentExchanges(clock);
  return {
    name: 'deadline',
    enter(exchange) {
      let patienceMs = timeout;
      if (exchange.mayHaveHeader(deadlineHeaders)) {
        const header = readRequest(exchange.headers);
        patienceMs = Math.min(timeout, header.patienceMs ?? readTimeout(exchange) ?? Infinity);
        exchange.attempt = header.attempt;
        exchange.ownedUpstream = header.owner === true;
        // Any client could claim to be critical, so only the priority of trusted callers is used.
        if (header.priority && inside?.has(exchange.peer)) exchange.priority = header.priority;
      }
      const given = priority?.(exchange);
      if (given) exchange.priority = given;
      if (patienceMs <= least) return spent;

      if (patienceMs < Infinity) {
        const now = exchange.nowOf(clock);
        // A guard that ran before may have set an earlier deadline.
        exchange.patienceEndsAt = Math.min(exchange.patienceEndsAt, now + patienceMs);
        if (patienceMs > 2 * recentMs) recent.add(exchange, now);
        else watch(clock, exchange);
      }
      exchange.isAmbient = true;
      return undefined;
    },
  };
}

/** Reads `X-Request-Timeout-Ms`; undefined if it is not a whole number. */
function readTimeout(exchange: Exchange): number | undefined {
  const text = exchange.header('x-request-timeout-ms') ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** Sets a timer that ends the request at its deadline. */
function watch(clock: Clock, exchange: Exchange): void {
  const since = exchange.clock.now();
  const timer = new Timer(clock, (now) => {
    const tookMs = Math.round(now - since);
    exchange.expire(tooSlow, new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the request', tookMs, undefined));
  });
  timer.setAt(exchange.patienceEndsAt);
  exchange.onEnd(() => timer.clear());
}

/**
 * Collects the requests of the last 5 ms, with one timer for all of them. Requests that are still running when the
 * timer fires get a timer of their own.
 */
class RecentExchanges {
  readonly #clock: Clock;
  readonly #timer: Timer;
  #exchanges: Exchange[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#timer = new Timer(clock, () => this.#watchPending());
  }

  add(exchange: Exchange, now: number): void {
    this.#exchanges.push(exchange);
    if (!this.#timer.isSet) this.#timer.setAt(now + recentMs);
  }

  #watchPending(): void {
    const exchanges = this.#exchanges;
    this.#exchanges = [];
    for (const exchange of exchanges) if (!exchange.isAnswered) watch(this.#clock, exchange);
  }
}
