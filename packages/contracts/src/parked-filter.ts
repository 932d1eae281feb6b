import { OptionsError } from 'holdfast';
import { TriageError } from './contract-errors.ts';
import type { Act } from './controls.ts';
import type { ParkedEvent, ParkedStatus, TriageRule } from './triage.ts';

/** Matches parked events for which all given fields hold. */
export interface ParkedFilter {
  readonly ids?: readonly string[];
  readonly topic?: string;
  readonly type?: string;
  readonly key?: string;
  readonly tenant?: string;
  /** The error's type. */
  readonly reason?: string;
  readonly stop?: string;
  readonly fingerprint?: string;
  /** `parked` unless given. */
  readonly status?: ParkedStatus;
  readonly operation?: string;
  /** True: only events that belong to no replay, which are those that a replay of this filter would select. */
  readonly isFree?: boolean;
  /** Parked at or after, epoch ms. */
  readonly from?: number;
  /** Parked before, epoch ms. */
  readonly to?: number;
  /** A part of the message, the key or a text payload; upper and lower case are equal. */
  readonly text?: string;
}

/** Whether a filter matches an event: for rules, and for engines without a query language. */
export function matches(filter: ParkedFilter, event: ParkedEvent): boolean {
  const { ids, from = -Infinity, to = Infinity, text, status = 'parked' } = filter;
  if (event.status !== status) return false;
  if (filter.isFree && event.operation !== undefined) return false;
  if (ids && !ids.includes(event.id)) return false;
  if (event.parkedAt < from || event.parkedAt >= to) return false;
  for (const name of ['topic', 'type', 'key', 'tenant', 'operation'] as const) {
    if (filter[name] !== undefined && filter[name] !== event[name]) return false;
  }
  for (const name of ['reason', 'stop'] as const) {
    if (filter[name] !== undefined && filter[name] !== event.diagnosis[name]) return false;
  }
  if (filter.fingerprint !== undefined && filter.fingerprint !== fingerprintOf(event)) return false;
  return text === undefined || contains(event, text.toLowerCase());
}

/** The key of an event's group: the fingerprint of its error, or the stop reason if there is no error. */
export function fingerprintOf(event: Pick<ParkedEvent, 'diagnosis'>): string {
  return event.diagnosis.error?.fingerprint ?? event.diagnosis.stop;
}

/** True when the filter would match everything. `status`, `isFree` and an empty `text` do not count as conditions. */
export function isEmptyFilter(filter: ParkedFilter): boolean {
  return Object.entries(filter).every(
    ([name, value]) =>
      value === undefined || name === 'status' || name === 'isFree' || (name === 'text' && value === ''),
  );
}

/** The first rule that matches the event. */
export function ruleFor(rules: readonly TriageRule[], event: ParkedEvent): TriageRule | undefined {
  return rules.find((rule) => matches(rule.filter, event));
}

const isText = (value: unknown) => typeof value === 'string';
const isTime = (value: unknown) => typeof value === 'number' && !Number.isNaN(value);

const terms: Readonly<
  Record<keyof ParkedFilter, readonly [isSo: (value: unknown) => boolean, what: string]>
> = {
  ids: [(value) => Array.isArray(value) && value.every(isText), 'a list of ids'],
  topic: [isText, 'a text'],
  type: [isText, 'a text'],
  key: [isText, 'a text'],
  tenant: [isText, 'a text'],
  reason: [isText, 'a text'],
  stop: [isText, 'a text'],
  fingerprint: [isText, 'a text'],
  status: [isText, 'a status'],
  operation: [isText, 'a text'],
  isFree: [(value) => typeof value === 'boolean', 'true or false'],
  from: [isTime, 'a time, in epoch ms'],
  to: [isTime, 'a time, in epoch ms'],
  text: [isText, 'a text'],
};

/** Throws for unknown names and wrong values: such a condition would be ignored, and the filter would match too much. */
export function assertFilter(filter: ParkedFilter): void {
  if (typeof filter !== 'object' || filter === null)
    throw new OptionsError('filter', filter, 'what is to be matched');
  for (const [name, value] of Object.entries(filter)) {
    if (!Object.hasOwn(terms, name))
      throw new OptionsError('filter', name, `one of ${Object.keys(terms).join(', ')}`);
    const [isSo, what] = terms[name as keyof ParkedFilter];
    if (value !== undefined && !isSo(value)) throw new OptionsError(`filter.${name}`, value, what);
  }
}

/** For engines: throws for a filter that would match everything. */
export function assertFilterNotEmpty(filter: ParkedFilter): void {
  assertFilter(filter);
  if (isEmptyFilter(filter))
    throw new TriageError('EMPTY_FILTER', 'a filter that names nothing would match everything');
}

/** For engines: throws for an act without `who` or `why`. */
export function assertReason(act: Act): void {
  if (!isFilled(act?.who) || !isFilled(act?.why)) {
    throw new TriageError('NO_REASON', 'say who does this and why');
  }
}

function isFilled(text: unknown): boolean {
  return typeof text === 'string' && text.trim() !== '';
}

function contains(event: ParkedEvent, text: string): boolean {
  const { payload, key = '', diagnosis } = event;
  return [diagnosis.message, key, typeof payload === 'string' ? payload : ''].some((place) =>
    place.toLowerCase().includes(text),
  );
}
