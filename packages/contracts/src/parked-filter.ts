import { OptionsError } from 'holdfast';
import { TriageError } from './contract-errors.ts';
import type { Act } from './controls.ts';
import type { ParkedEvent, ParkedStatus, TriageRule } from './triage.ts';

/** Selects parked events. An event matches if all given fields match. */
export interface ParkedFilter {
  readonly ids?: readonly string[];
  readonly topic?: string;
  readonly type?: string;
  readonly key?: string;
  readonly tenant?: string;
  /** The type of the error, such as `TypeError`. */
  readonly reason?: string;
  readonly stop?: string;
  readonly fingerprint?: string;
  /** The status of the events; `parked` unless given. */
  readonly status?: ParkedStatus;
  readonly operation?: string;
  /**
   * True: only events that belong to no replay operation. These are the events that a replay with this filter would
   * select.
   */
  readonly isFree?: boolean;
  /** Only events that were parked at this time or later, epoch ms. */
  readonly from?: number;
  /** Only events that were parked before this time, epoch ms. */
  readonly to?: number;
  /** A text that the error message, the key or the text payload contains. Upper and lower case are equal. */
  readonly text?: string;
}

/** True if the event matches the filter. Used for triage rules, and by engines whose store has no query language. */
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

/**
 * Returns the text by which parked events are grouped: the fingerprint of the error, or the stop reason if there is no
 * error.
 */
export function fingerprintOf(event: Pick<ParkedEvent, 'diagnosis'>): string {
  return event.diagnosis.error?.fingerprint ?? event.diagnosis.stop;
}

/** True if the filter has no condition. `status`, `isFree` and an empty `text` do not count as conditions. */
export function isEmptyFilter(filter: ParkedFilter): boolean {
  return Object.entries(filter).every(
    ([name, value]) =>
      value === undefined || name === 'status' || name === 'isFree' || (name === 'text' && value === ''),
  );
}

/** Returns the first rule that matches the event. */
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

/** Throws for unknown fields and invalid values. If they were ignored, the filter would match too many events. */
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

/** Throws for a filter that would match all events, so that nobody replays everything by mistake. */
export function assertFilterNotEmpty(filter: ParkedFilter): void {
  assertFilter(filter);
  if (isEmptyFilter(filter))
    throw new TriageError('EMPTY_FILTER', 'a filter that names nothing would match everything');
}

/** Throws if `who` or `why` is missing or blank. */
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
