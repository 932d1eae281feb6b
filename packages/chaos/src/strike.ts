import type { Random } from 'holdfast';
import { quantile } from './distribution.ts';
import type { ChaosPlan, FaultKind, FaultSettings } from './spec.ts';

/** What a fault can hit: a call, an event, or an exchange (a request and its answer) on a connection. */
export interface Subject {
  /** The number of this subject (a call, event or exchange) in the order of arrival, from 1. */
  readonly number: number;
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  /** The `host:port` of a server, the topic of an event, or another name that the user chooses. */
  readonly target?: string | undefined;
  /**
   * True: the connection has had an exchange (a request and its answer) before, so it can no longer be
   * refused.
   */
  readonly isReused?: boolean | undefined;
}

type EndingKind = 'hang' | 'refuse' | 'reset' | 'truncate' | 'error' | 'status';

/** The combined effect of all faults that hit one subject (a call, event or exchange). */
export interface Fault {
  /** The kinds of the faults that have an effect, in the order of the `ChaosSpec`. */
  readonly kinds: readonly FaultKind[];
  /** The total delays of the request and of the response, in ms. 0: no delay. */
  readonly requestDelayMs: number;
  readonly responseDelayMs: number;
  /** The speed limits of the request and of the response. Infinity: no limit. */
  readonly requestBytesPerSecond: number;
  readonly responseBytesPerSecond: number;
  /** The fault that ends the call or event with a failure. `undefined`: it does not fail. */
  readonly ending: FaultSettings<EndingKind> | undefined;
  readonly duplicate: FaultSettings<'duplicate'> | undefined;
  readonly reorder: FaultSettings<'reorder'> | undefined;
}

/**
 * Decides which faults hit `subject` (a call, event or exchange). `now` is in ms since the faults were set.
 * Each fault always draws two random numbers, so that a change to one fault does not affect the others.
 */
export function strike(plan: ChaosPlan, random: Random, now: number, subject: Subject): Fault | undefined {
  const kinds: FaultKind[] = [];
  let requestDelayMs = 0;
  let responseDelayMs = 0;
  let requestBytesPerSecond = Infinity;
  let responseBytesPerSecond = Infinity;
  let ending: Fault['ending'];
  let duplicate: Fault['duplicate'];
  let reorder: Fault['reorder'];

  for (const fault of plan.faults) {
    const roll = random();
    const share = random();
    if (roll >= fault.rate || !isInForce(fault, now) || !isMeant(fault, subject)) continue;

    if (fault.kind === 'latency') {
      const ms = quantile(fault.delay as NonNullable<typeof fault.delay>, share);
      if (fault.direction !== 'response') requestDelayMs += ms;
      if (fault.direction !== 'request') responseDelayMs += ms;
    } else if (fault.kind === 'slow') {
      if (fault.direction !== 'response')
        requestBytesPerSecond = Math.min(requestBytesPerSecond, fault.bytesPerSecond);
      if (fault.direction !== 'request')
        responseBytesPerSecond = Math.min(responseBytesPerSecond, fault.bytesPerSecond);
    } else if (fault.kind === 'duplicate') {
      duplicate ??= fault;
    } else if (fault.kind === 'reorder') {
      reorder ??= fault;
    } else if (ending === undefined) {
      ending = fault;
    } else continue;
    kinds.push(fault.kind);
  }
  if (kinds.length === 0) return undefined;
  return {
    kinds,
    requestDelayMs,
    responseDelayMs,
    requestBytesPerSecond,
    responseBytesPerSecond,
    ending,
    duplicate,
    reorder,
  };
}

/** Returns whether the fault is active at the time `now`. */
export function isInForce({ from, until = Infinity, flap }: FaultSettings, now: number): boolean {
  if (now < from || now >= until) return false;
  return flap === undefined || (now - from) % (flap.up + flap.down) >= flap.up;
}

/** Returns the time at which the result of `isInForce` changes next. Infinity: it does not change. */
export function nextChange(fault: FaultSettings, now: number): number {
  const { from, until = Infinity, flap } = fault;
  if (now < from) return from;
  if (now >= until) return Infinity;
  if (flap === undefined) return until;
  const period = flap.up + flap.down;
  const start = from + Math.floor((now - from) / period) * period;
  return Math.min(until, isInForce(fault, now) ? start + period : start + flap.up);
}

function isMeant({ kind, first = Infinity, every, match }: FaultSettings, subject: Subject): boolean {
  if (kind === 'refuse' && subject.isReused) return false;
  if (subject.number > first || subject.number % every !== 0) return false;
  if (match === undefined) return true;
  return (
    fits(match.method, subject.method, true) &&
    fits(match.path, subject.path) &&
    fits(match.target, subject.target)
  );
}

function fits(
  patterns: readonly string[] | undefined,
  value: string | undefined,
  ignoresCase = false,
): boolean {
  if (patterns === undefined) return true;
  if (value === undefined) return false;
  return patterns.some((pattern) => resembles(pattern, value, ignoresCase));
}

function resembles(pattern: string, value: string, ignoresCase: boolean): boolean {
  if (ignoresCase) return resembles(pattern.toUpperCase(), value.toUpperCase(), false);
  const [head = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return value === pattern;
  if (!value.startsWith(head)) return false;
  // Find each piece of the pattern at its first possible position. A later position would not help the next
  // pieces.
  const tail = rest.pop() as string;
  let at = head.length;
  for (const piece of rest) {
    const found = value.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return value.length - tail.length >= at && value.endsWith(tail);
}
