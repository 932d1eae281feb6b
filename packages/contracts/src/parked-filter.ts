import { OptionsError } from 'holdfast';
import { TriageError } from './contract-errors.ts';
import type { Act } from './controls.ts';
import type { ParkedEvent, ParkedStatus, TriageRule } from './triage.ts';

/** All that is given must hold. */
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
  /** Only those that no replay has: what a replay of this filter would select. */
  readonly isFree?: boolean;
  /** Parked at or after, epoch ms. */
  readonly from?: number;
  /** Parked before, epoch ms. */
  readonly to?: number;
  /** Somewhere in the message, the key or a payload that is text; whatever the case. */
  readonly text?: string;
}

/** The one meaning of a filter, for engines without a query language and for rules. */
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

/** What groups are made by: an event that was parked without an error is grouped by its stop reason. */
export function fingerprintOf(event: Pick<ParkedEvent, 'diagnosis'>): string {
  return event.diagnosis.error?.fingerprint ?? event.diagnosis.stop;
}

/** True when it would match everything. Status, freedom and a text that is everywhere do not narrow anything. */
export function isEmptyFilter(filter: ParkedFilter): boolean {
  return Object.entries(filter).every(
    ([name, value]) =>
      value === undefined || name === 'status' || name === 'isFree' || (name === 'text' && value === ''),
  );
}

/** The first rule that matches, if one does. */
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

/** For what acts on all that a filter matches: a name that is not known, or no value for it, would narrow nothing. */
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

/** For engines: refuses what would touch everything. */
export function assertFilterNotEmpty(filter: ParkedFilter): void {
  assertFilter(filter);
  if (isEmptyFilter(filter))
    throw new TriageError('EMPTY_FILTER', 'a filter that names nothing would match everything');
}

/** For engines: refuses an act without a person or a reason. */
export function assertReason(act: Act): void {
  if (!isSaid(act?.who) || !isSaid(act?.why)) {
    throw new TriageError('NO_REASON', 'say who does this and why');
  }
}

function isSaid(text: unknown): boolean {
  return typeof text === 'string' && text.trim() !== '';
}

function contains(event: ParkedEvent, text: string): boolean {
  const { payload, key = '', diagnosis } = event;
  return [diagnosis.message, key, typeof payload === 'string' ? payload : ''].some((place) =>
    place.toLowerCase().includes(text),
  );
}
