import { Alarm, type Clock, ExpiredError, systemClock } from 'holdfast';
import { anything, callback, duration, readTable, type SpecOf } from 'holdfast/fields';
import { readRequest } from 'holdfast/wire';
import type { Peers } from './address.ts';
import type { Exchange } from './exchange.ts';
import type { Part } from './part.ts';
import { problem } from './problem.ts';
import 'holdfast/ambient';

const fields = {
  timeout: duration('30s', { unlimited: Infinity }),
  least: duration('0ms'),
  inside: anything<Peers>(),
  priority: callback<(exchange: Exchange) => Exchange['priority'] | undefined>(),
};

export type DeadlineOptions = SpecOf<typeof fields>;

const spent = problem('patience-spent');
const tooSlow = problem('too-slow');

/** Headers by which others tell how long they wait. */
const telling = ['holdfast', 'x-request-timeout-ms', 'grpc-timeout', 'x-envoy-expected-rq-timeout-ms'];

/**
 * How long the client waits, and that it is still there. What a request says can only shorten `timeout`. Handlers run
 * inside it: `@holdfast/http`, consumers and whoever reads `surroundings()` inherit patience, ownership, attempt and signal.
 */
export function deadline(options: DeadlineOptions = {}, environment: { readonly clock?: Clock } = {}): Part {
  const { timeout, least, inside, priority } = readTable(fields, options, 'deadline.');
  const { clock = systemClock } = environment;
  return {
    name: 'deadline',
    enter(exchange) {
      let patienceMs = timeout;
      if (telling.some((name) => exchange.header(name) !== undefined)) {
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
        const endsAt = clock.now() + patienceMs;
        exchange.patienceEndsAt = endsAt;
        const alarm = new PatienceAlarm(exchange, patienceMs);
        clock.set(alarm, endsAt);
        exchange.onEnd(() => clock.clear(alarm));
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

class PatienceAlarm extends Alarm {
  readonly #exchange: Exchange;
  readonly #patienceMs: number;

  constructor(exchange: Exchange, patienceMs: number) {
    super();
    this.#exchange = exchange;
    this.#patienceMs = patienceMs;
  }

  override ring(): void {
    const reason = new ExpiredError('HOLDFAST_PATIENCE_SPENT', 'the request', this.#patienceMs, undefined);
    this.#exchange.expire(tooSlow, reason);
  }
}
