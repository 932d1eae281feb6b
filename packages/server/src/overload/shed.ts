import {
  type Duration,
  type Environment,
  later,
  OptionsError,
  type Priority,
  priorityRank,
  systemClock,
  systemRandom,
} from 'holdfast';
import { callback, count, duration, type FieldsOf, number } from 'holdfast/fields';
import { AdaptiveLimit } from 'holdfast/machines';
import { readRequest } from 'holdfast/wire';
import { addressKey, clientAddress, type Peers } from '../address.ts';
import type { Exchange } from '../exchange.ts';
import { peersField, readOptions } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { noCapacity } from '../problem.ts';
import type { PlainResponse } from '../response.ts';
import { AdmissionQueue } from './admission-queue.ts';
import { Pressure, type Readings } from './pressure.ts';
import { TenantLevels } from './tenant-levels.ts';

/** The options of `shed`. Its limit of requests in flight adapts to what the server can do. */
export interface ShedOptions {
  /** The limit of requests in flight when the server starts, at most `ceiling`. Default: `20`. */
  initial?: number | undefined;
  /** The lowest limit of requests in flight. Default: `4`. */
  floor?: number | undefined;
  /** The highest limit of requests in flight. It must be at least `floor`. Default: `1000`. */
  ceiling?: number | undefined;
  /**
   * How many more requests of priority `critical` may run, as a share of the limit from 0 to 1. Default:
   * `0.1`.
   */
  reserve?: number | undefined;
  /** The most requests in the queue. Further requests are refused. Default: `50`. */
  queueMax?: number | undefined;
  /** The longest time that a request waits in the queue. Default: `100ms`. */
  queueTimeout?: Duration | undefined;
  /**
   * Returns the priority of a request. `undefined`: the priority that a caller in `inside` sent, or
   * `default`. Default: none.
   */
  priority?: ((exchange: Exchange) => Priority | undefined) | undefined;
  /**
   * Returns the tenant of a request. Under overload, some tenants get all their requests refused, and the
   * others none. Default: the address.
   */
  tenant?: ((exchange: Exchange) => string | undefined) | undefined;
  /**
   * The addresses of trusted callers, such as `peers('10.0.0.0/8')`. Only their header `Holdfast` can set a
   * priority. Default: none.
   */
  inside?: Peers | undefined;
  /**
   * The proxies in front of this server. Only their `X-Forwarded-For` header is used to find a client's
   * address. Default: none.
   */
  proxies?: Peers | undefined;
}

export const shedFields = {
  initial: count(20, 1),
  floor: count(4, 1),
  ceiling: count(1_000, 1),
  reserve: number(0.1, 0, 1),
  queueMax: count(50, 0),
  queueTimeout: duration('100ms'),
  priority: callback<(exchange: Exchange) => Priority | undefined>(),
  tenant: callback<(exchange: Exchange) => string | undefined>(),
  inside: peersField,
  proxies: peersField,
} satisfies FieldsOf<ShedOptions>;

/**
 * Limits how many requests run at the same time. The limit adapts to the load, and unimportant requests are
 * refused first.
 */
export interface ShedPart extends Part {
  /** The current limit of requests in flight. */
  readonly limit: number;
  readonly inFlight: number;
  readonly queued: number;
  readonly refused: Readonly<Record<Priority, number>>;
  /**
   * Requests have levels from 0 (most important) to 383. On a full server, only requests with a lower level
   * than this may wait.
   */
  readonly threshold: number;
}

interface Arrival {
  readonly exchange: Exchange;
  readonly resolve: (response: PlainResponse | undefined | Promise<PlainResponse | undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/** The clock, the random numbers and the load readings. Tests can replace them. */
export interface ShedEnvironment extends Environment {
  /** Reads the load of the thread and the heap. Default: measured in this process. */
  readonly readings?: Readings | undefined;
}

/**
 * A part for `guard` that refuses requests under overload, the least important first. The limit of requests
 * in flight adapts to throughput and latency.
 */
export function shed(options: ShedOptions = {}, environment: ShedEnvironment = {}): ShedPart {
  const settings = readOptions(shedFields, options, 'shed', '{ ceiling: 1000 }');
  const { floor, ceiling } = settings;
  if (ceiling < floor) throw new OptionsError('shed.ceiling', ceiling, `at least the floor of ${floor}`);
  // A ceiling below the default of `initial` is no mistake, so the server then starts at its ceiling.
  if (settings.initial > ceiling && settings.initial !== shedFields.initial.default)
    throw new OptionsError('shed.initial', settings.initial, `at most the ceiling of ${ceiling}`);
  const { clock = systemClock, random = systemRandom, readings } = environment;
  const { priority: priorityOf, tenant: tenantOf, inside, proxies, queueMax } = settings;
  const adaptive = new AdaptiveLimit({ ...settings, initial: Math.min(settings.initial, ceiling) });
  const queue = new AdmissionQueue({ ...sizes(), queueTimeoutMs: settings.queueTimeout }, clock);
  const tenantLevels = new TenantLevels(clock, random);
  const pressure = new Pressure(readings);
  /** The requests of this iteration of the event loop. They are decided together, by priority. */
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
      if (adaptive.limit !== limit) queue.resize(endedAt, sizes());
      queue.leave(endedAt);
    });
  }

  function refuse(exchange: Exchange) {
    refused[exchange.priority]++;
    return noCapacity(random);
  }

  /** `noteDrop` lowers the threshold, so that fewer requests may wait. */
  function drop(exchange: Exchange) {
    tenantLevels.noteDrop();
    return refuse(exchange);
  }

  function mayWait(exchange: Exchange, now: number): boolean {
    const tenant = tenantOf?.(exchange) ?? addressKey(clientAddress(exchange, proxies));
    return tenantLevels.mayWait(exchange.priority, tenant, now);
  }

  function decide(
    exchange: Exchange,
    now: number,
  ): PlainResponse | undefined | Promise<PlainResponse | undefined> {
    if (pressure.isHigh(now)) {
      // The thread or the heap is the bottleneck. So requests are refused even below the limit.
      tenantLevels.noteDrop();
      if (!mayWait(exchange, now)) return refuse(exchange);
    }
    if (queue.tryEnter(exchange, now)) {
      admit(exchange, now);
      return undefined;
    }
    if (!mayWait(exchange, now)) return refuse(exchange);
    const admitted = queue.enter(exchange, now);
    if (admitted === false) return drop(exchange);
    if (admitted === true) {
      admit(exchange, now);
      return undefined;
    }
    return admitted.then((isAdmitted) => {
      if (!isAdmitted) return drop(exchange);
      admit(exchange, clock.now());
      return undefined;
    });
  }

  function decideArrived(): void {
    const all = arrived;
    arrived = [];
    const now = clock.now();
    if (all.length > 1)
      all.sort((a, b) => priorityRank[a.exchange.priority] - priorityRank[b.exchange.priority]);
    for (const { exchange, resolve, reject } of all) {
      try {
        resolve(decide(exchange, now));
      } catch (error) {
        // A function in the options, such as `tenant`, threw an error. Only this request fails.
        reject(error);
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
      return queue.bulkhead.inFlight;
    },
    get queued() {
      return queue.bulkhead.queued;
    },
    get threshold() {
      return tenantLevels.threshold;
    },
    enter(exchange) {
      const given = priorityOf?.(exchange);
      if (given) exchange.priority = given;
      else if (inside?.has(exchange.peer)) {
        exchange.priority = readRequest(exchange.headers).priority ?? exchange.priority;
      }
      return new Promise((resolve, reject) => {
        if (arrived.push({ exchange, resolve, reject }) === 1) later(decideArrived);
      });
    },
  };
}
