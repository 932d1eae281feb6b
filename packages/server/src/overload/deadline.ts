import { Alarm, type Clock, ExpiredError, systemClock } from 'holdfast';
import { callback, duration, readTable, type SpecOf } from 'holdfast/fields';
import { readRequest } from 'holdfast/wire';
import type { Exchange } from '../exchange.ts';
import { HeaderNames } from '../header-names.ts';
import { trusted } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { problem } from '../problem.ts';
import 'holdfast/ambient';

const fields = {
  timeout: duration('30s', { unlimited: Infinity }),
  least: duration('0ms'),
  inside: trusted,
  priority: callback<(exchange: Exchange) => Exchange['priority'] | undefined>(),
};

export type DeadlineOptions = SpecOf<typeof fields>;

const spent = problem('patience-spent');
const tooSlow = problem('too-slow');

const telling = new HeaderNames(
  'holdfast',
  'x-request-timeout-ms',
  'grpc-timeout',
  'x-envoy-expected-rq-timeout-ms',
);

/** Most requests are answered before this, and never need an alarm of their own. */
const latelyMs = 5;

/**
 * How long the client waits, and that it is still there. What a request says can only shorten `timeout`. Handlers run
 * inside it: `@holdfast/http`, consumers and whoever reads `ambientContext()` inherit patience, ownership, attempt and signal.
 */
export function deadline(
  options: DeadlineOptions = {},
  environment: { readonly clock?: Clock | undefined } = {},
): Part {
  const { timeout, least, inside, priority } = readTable(fields, options, 'deadline.');
  const { clock = systemClock } = environment;
  const begun = new LatelyBegun(clock);
  return {
    name: 'deadline',
    enter(exchange) {
      let patienceMs = timeout;
      if (exchange.mayHave(telling)) {
        const said = readRequest(exchange.headers);
        patienceMs = Math.min(timeout, said.patienceMs ?? readTimeout(exchange) ?? Infinity);
        exchange.attempt = said.attempt;
        exchange.ownedUpstream = said.owner === true;
        // Anybody can call itself critical: only those inside are believed.
        if (said.priority && inside?.has(exchange.peer)) exchange.priority = said.priority;
      }
      const given = priority?.(exchange);
      if (given) exchange.priority = given;
      if (patienceMs <= least) return spent;

      if (patienceMs < Infinity) {
        const now = exchange.nowBy(clock);
        // A guard before this one may have said less.
        exchange.patienceEndsAt = Math.min(exchange.patienceEndsAt, now + patienceMs);
        if (patienceMs > 2 * latelyMs) begun.add(exchange, now);
        else watch(clock, exchange);
      }
      exchange.isAmbient = true;
      return undefined;
    },
  };
}

/** Patience of a request without a unit, in ms; what is no number is not looked at. */
function readTimeout(exchange: Exchange): number | undefined {
  const text = exchange.header('x-request-timeout-ms') ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** From now on somebody looks at the clock for this request. */
function watch(clock: Clock, exchange: Exchange): void {
  const alarm = new PatienceAlarm(exchange);
  clock.set(alarm, exchange.patienceEndsAt);
  exchange.onEnd(() => clock.clear(alarm));
}

/** Requests that have just begun: those still under way when it rings are watched from then on. */
class LatelyBegun extends Alarm {
  readonly #clock: Clock;
  #exchanges: Exchange[] = [];

  constructor(clock: Clock) {
    super();
    this.#clock = clock;
  }

  add(exchange: Exchange, now: number): void {
    this.#exchanges.push(exchange);
    if (this.index < 0) this.#clock.set(this, now + latelyMs);
  }

  override ring(): void {
    const exchanges = this.#exchanges;
    this.#exchanges = [];
    for (const exchange of exchanges) if (!exchange.isAnswered) watch(this.#clock, exchange);
  }
}

class PatienceAlarm extends Alarm {
  readonly #exchange: Exchange;
  readonly #since: number;

  constructor(exchange: Exchange) {
    super();
    this.#exchange = exchange;
    this.#since = exchange.clock.now();
  }

  override ring(now: number): void {
    const tookMs = Math.round(now - this.#since);
    this.#exchange.expire(
      tooSlow,
      new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the request', tookMs, undefined),
    );
  }
}
