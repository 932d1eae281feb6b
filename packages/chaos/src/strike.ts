import type { Random } from 'holdfast';
import { quantile } from './distribution.ts';
import type { ChaosPlan, FaultKind, FaultSettings } from './spec.ts';

/** What a fault can hit: a request, an event, or an exchange on a connection. */
export interface Subject {
  /** Counted from 1, in the order of arrival. */
  readonly number: number;
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  /** `host:port` of a server, the topic of an event, or what the caller calls it. */
  readonly target?: string | undefined;
  /** True on a connection that is open already: it can no longer be refused. */
  readonly isReused?: boolean | undefined;
}

type EndingKind = 'hang' | 'refuse' | 'reset' | 'truncate' | 'error' | 'status';

/** All faults that hit one subject, combined. */
export interface Fault {
  /** The faults that have an effect, in the order of the document. */
  readonly kinds: readonly FaultKind[];
  /** Milliseconds; 0 where there is no latency. */
  readonly requestDelayMs: number;
  readonly responseDelayMs: number;
  /** Infinity: not slowed down. */
  readonly requestBytesPerSecond: number;
  readonly responseBytesPerSecond: number;
  /** How it fails; `undefined`: it does not. */
  readonly ending: FaultSettings<EndingKind> | undefined;
  readonly duplicate: FaultSettings<'duplicate'> | undefined;
  readonly reorder: FaultSettings<'reorder'> | undefined;
}

/**
 * What happens to `subject`, if anything. Pure but for the draws: two a fault, whether or not it strikes, so that a
 * change to one fault does not move the others. `now` is in ms since the document was given.
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

/** Whether the time is right, by `from`, `until` and `flap`. */
export function isInForce({ from, until = Infinity, flap }: FaultSettings, now: number): boolean {
  if (now < from || now >= until) return false;
  return flap === undefined || (now - from) % (flap.up + flap.down) >= flap.up;
}

/** When the result of `isInForce` changes next; Infinity: never. */
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
  // Each piece at its first match: a later match never helps the pieces after it.
  const tail = rest.pop() as string;
  let at = head.length;
  for (const piece of rest) {
    const found = value.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return value.length - tail.length >= at && value.endsWith(tail);
}
