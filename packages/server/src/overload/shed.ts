import {
  type Clock,
  later,
  type Priority,
  priorityRank,
  type Random,
  systemClock,
  systemRandom,
} from 'holdfast';
import { callback, count, duration, number, readTable, type SpecOf } from 'holdfast/fields';
import { AdaptiveLimit } from 'holdfast/machines';
import { readRequest } from 'holdfast/wire';
import { addressKey, clientAddress } from '../address.ts';
import type { Exchange } from '../exchange.ts';
import { peersField } from '../option-fields.ts';
import type { Part } from '../part.ts';
import { noCapacity } from '../problem.ts';
import type { PlainResponse } from '../response.ts';
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
  inside: peersField,
  proxies: peersField,
};

export type ShedOptions = SpecOf<typeof fields>;

export interface ShedPart extends Part {
  /** How many requests may be in flight now. The limit adapts to the load. */
  readonly limit: number;
  readonly inFlight: number;
  readonly queued: number;
  readonly refused: Readonly<Record<Priority, number>>;
  /**
   * Each request has a level from 0, the most important, to 383. While the server is full, only requests with a level
   * below this threshold may wait in the queue. See `TenantLevels`.
   */
  readonly threshold: number;
}

interface Arrival {
  readonly exchange: Exchange;
  readonly resolve: (response: PlainResponse | undefined | Promise<PlainResponse | undefined>) => void;
  readonly reject: (error: unknown) => void;
}

export interface ShedEnvironment {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  /** Load of thread and heap; measured in this process by default. */
  readonly readings?: Readings | undefined;
}

/**
 * Makes a part that refuses requests when the server is overloaded, the least important first. The limit on requests in
 * flight adapts to throughput and latency. Requests above the limit wait for a short time in a queue, by priority, or
 * are refused immediately.
 *
 * Requests that arrive in the same turn of the event loop are decided together, the most important first. This is also
 * cheaper: on a busy server a batch of similar work costs far less than the same work between other tasks.
 */
export function shed(options: ShedOptions = {}, environment: ShedEnvironment = {}): ShedPart {
  const settings = readTable(fields, options, 'shed.');
  const { clock = systemClock, random = systemRandom, readings } = environment;
  const { priority: priorityOf, tenant: tenantOf, inside, proxies, queueMax } = settings;
  const adaptive = new AdaptiveLimit(settings);
  const queue = new AdmissionQueue({ ...sizes(), queueTimeoutMs: settings.queueTimeout }, clock);
  const tenantLevels = new TenantLevels(clock, random);
  const pressure = new Pressure(readings);
  /** Requests that arrived in this turn of the event loop and are not decided yet. */
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

  /**
   * Refuses a request that was allowed to wait. It calls `noteDrop`, so that the threshold falls and fewer requests may
   * wait.
   */
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
      // The thread or the heap is the bottleneck, so requests are refused even below the limit. `noteDrop` lowers the
      // threshold.
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
        // A function of the user threw. Only this request fails, not the others of its batch.
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
