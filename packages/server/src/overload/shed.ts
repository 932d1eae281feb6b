import { type Clock, later, type Priority, type Random, systemClock, systemRandom } from 'holdfast';
import { callback, count, duration, number, readTable, type SpecOf } from 'holdfast/fields';
import { AdaptiveLimit } from 'holdfast/machines';
import { readRequest } from 'holdfast/wire';
import { addressKey, clientAddress } from '../address.ts';
import type { Exchange } from '../exchange.ts';
import { trusted } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { noCapacity } from '../refusals.ts';
import type { Answer } from '../response.ts';
import { AdmissionQueue } from './admission-queue.ts';
import { Pressure, type Readings } from './pressure.ts';
import { TenantLevels } from './tenant-levels.ts';

const fields = {
  initial: count(20, 1),
  floor: count(4, 1),
  ceiling: count(1_000, 1),
  reserve: number(0.1, 0, 1),
  queueMax: count(50, 0),
  queueTimeout: duration('100ms'),
  priority: callback<(exchange: Exchange) => Priority | undefined>(),
  tenant: callback<(exchange: Exchange) => string | undefined>(),
  inside: trusted,
  proxies: trusted,
};

export type ShedOptions = SpecOf<typeof fields>;

export interface ShedPart extends Part {
  /** Requests that may be at work now. */
  readonly limit: number;
  readonly inFlight: number;
  readonly queued: number;
  readonly refused: Readonly<Record<Priority, number>>;
  /** Levels that may wait for a permit: 384 of them, those of the critical first. */
  readonly threshold: number;
}

interface Arrival {
  readonly exchange: Exchange;
  readonly answer: (answer: Answer | undefined | Promise<Answer | undefined>) => void;
  readonly fail: (error: unknown) => void;
}

const ranks: Readonly<Record<Priority, number>> = { critical: 0, default: 1, sheddable: 2 };

export interface ShedEnvironment {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  /** The process's own unless given. */
  readonly readings?: Readings | undefined;
}

/**
 * As much as can be done, and the most important of it. How many requests may be at work is found from what comes back;
 * the rest waits a moment in a short queue, by priority, or is refused at once.
 *
 * Those who arrive in one turn of the loop are looked at together, the most important first. It is also cheaper: what is
 * done for many in a row costs a busy server far less than the same between other things.
 */
export function shed(options: ShedOptions = {}, environment: ShedEnvironment = {}): ShedPart {
  const settings = readTable(fields, options, 'shed.');
  const { clock = systemClock, random = systemRandom, readings } = environment;
  const { priority: priorityOf, tenant: tenantOf, inside, proxies, queueMax } = settings;
  const adaptive = new AdaptiveLimit(settings);
  const gate = new AdmissionQueue({ ...sizes(), queueTimeoutMs: settings.queueTimeout }, clock);
  const cohorts = new TenantLevels(clock, random);
  const pressure = new Pressure(readings);
  /** In this turn of the loop. */
  let arrived: Arrival[] = [];
  const refused: Record<Priority, number> = { critical: 0, default: 0, sheddable: 0 };

  function sizes() {
    const concurrent = adaptive.limit;
    return { concurrent, queueMax, reserved: Math.ceil(concurrent * settings.reserve) };
  }

  function admit(exchange: Exchange, now: number): void {
    adaptive.onStart();
    pressure.admitted();
    exchange.onEnd((endedAt, completed) => {
      const { limit } = adaptive;
      if (completed) adaptive.onEnd(endedAt, endedAt - now, exchange.wasOverloaded);
      else adaptive.onCancel();
      if (adaptive.limit !== limit) gate.resize(endedAt, sizes());
      gate.leave(endedAt);
    });
  }

  function refuse(exchange: Exchange) {
    refused[exchange.priority]++;
    return noCapacity(random);
  }

  /** One who was thought important enough to wait had to be refused after all. */
  function drop(exchange: Exchange) {
    cohorts.drop();
    return refuse(exchange);
  }

  function mayWait(exchange: Exchange, now: number): boolean {
    const tenant = tenantOf?.(exchange) ?? addressKey(clientAddress(exchange, proxies));
    return cohorts.mayWait(exchange.priority, tenant, now);
  }

  function judge(exchange: Exchange, now: number): Answer | undefined | Promise<Answer | undefined> {
    if (pressure.isHigh(now)) {
      // No permit is short here: the thread or the heap is, and only fewer requests help.
      cohorts.drop();
      if (!mayWait(exchange, now)) return refuse(exchange);
    }
    if (gate.tryEnter(exchange, now)) {
      admit(exchange, now);
      return undefined;
    }
    if (!mayWait(exchange, now)) return refuse(exchange);
    const admitted = gate.enter(exchange, now);
    if (admitted === false) return drop(exchange);
    if (admitted === true) {
      admit(exchange, now);
      return undefined;
    }
    return admitted.then((isIn) => {
      if (!isIn) return drop(exchange);
      admit(exchange, clock.now());
      return undefined;
    });
  }

  function judgeArrived(): void {
    const all = arrived;
    arrived = [];
    const now = clock.now();
    if (all.length > 1) all.sort((a, b) => ranks[a.exchange.priority] - ranks[b.exchange.priority]);
    for (const { exchange, answer, fail } of all) {
      try {
        answer(judge(exchange, now));
      } catch (error) {
        // A function of the user's threw: that is this request's misfortune, and nobody else's.
        fail(error);
      }
    }
  }

  return {
    name: 'shed',
    refused,
    get limit() {
      return adaptive.limit;
    },
    get inFlight() {
      return gate.bulkhead.inFlight;
    },
    get queued() {
      return gate.bulkhead.queued;
    },
    get threshold() {
      return cohorts.threshold;
    },
    enter(exchange) {
      const given = priorityOf?.(exchange);
      if (given) exchange.priority = given;
      else if (inside?.has(exchange.peer)) {
        exchange.priority = readRequest(exchange.headers).priority ?? exchange.priority;
      }
      return new Promise((answer, fail) => {
        if (arrived.push({ exchange, answer, fail }) === 1) later(judgeArrived);
      });
    },
  };
}
