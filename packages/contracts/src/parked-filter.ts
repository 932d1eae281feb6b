import { OptionsError } from 'holdfast';
import { TriageError } from './contract-errors.ts';
import type { Act } from './controls.ts';
import type { ParkedEvent, ParkedStatus, TriageRule } from './triage.ts';

/** One value, or a list of values. With a list, one of the values must match. */
export type OneOf<T extends string = string> = T | readonly T[];

/**
 * Properties of parked events that a filter can name. A parked event has failed and waits for an operator.
 */
export interface ParkedProperties {
  readonly topic?: OneOf;
  readonly type?: OneOf;
  readonly key?: OneOf;
  readonly tenant?: OneOf;
  /** The type of the error, such as `TypeError`. */
  readonly reason?: OneOf;
  readonly stop?: OneOf;
  readonly fingerprint?: OneOf;
  /** The name of the consumer that parked the event. */
  readonly consumer?: OneOf;
  /** The wanted header values, by header name. */
  readonly headers?: Readonly<Record<string, OneOf>>;
}

/** Selects parked events (events that wait for an operator). An event must match all given fields. */
export interface ParkedFilter extends ParkedProperties {
  readonly ids?: readonly string[];
  /** An event that has one of these properties does not match the filter. */
  readonly not?: ParkedProperties;
  /** The status that an event must have. The default is `parked`. */
  readonly status?: OneOf<ParkedStatus>;
  readonly operation?: string;
  /** Only events that this replay published. The value is the id of the latest replay of the event. */
  readonly replayedBy?: string;
  /** True: only events that no replay is working on. */
  readonly isFree?: boolean;
  /** Only events that were parked at this time or later, epoch ms. */
  readonly from?: number;
  /** Only events that were parked before this time, epoch ms. */
  readonly to?: number;
  /** Only events whose error message, key or text payload contains this text. Case is ignored. */
  readonly text?: string;
}

/**
 * Returns whether a parked event matches a filter. An empty filter matches all events of the status `parked`.
 */
export function matches(filter: ParkedFilter, event: ParkedEvent): boolean {
  const {
    ids,
    from = -Infinity,
    to = Infinity,
    text,
    status = 'parked',
    not,
    operation,
    replayedBy,
  } = filter;
  if (!isOneOf(status, event.status)) return false;
  if (filter.isFree && event.operation !== undefined) return false;
  if (ids && !ids.includes(event.id)) return false;
  if (event.parkedAt < from || event.parkedAt >= to) return false;
  if (operation !== undefined && operation !== event.operation) return false;
  if (replayedBy !== undefined && replayedBy !== event.replayedBy) return false;
  if (comparisons(filter, event).includes(false)) return false;
  if (not && comparisons(not, event).includes(true)) return false;
  return text === undefined || contains(event, text.toLowerCase());
}

/** The names of the filter properties except `headers`. An event has at most one value for each of them. */
export const filterProperties = [
  'topic',
  'type',
  'key',
  'tenant',
  'reason',
  'stop',
  'fingerprint',
  'consumer',
] as const satisfies readonly (keyof ParkedProperties)[];

function comparisons(properties: ParkedProperties, event: ParkedEvent): boolean[] {
  const named = filterProperties
    .filter((name) => properties[name] !== undefined)
    .map((name) => isOneOf(properties[name]!, propertyOf(event, name)));
  const headers = Object.entries(properties.headers ?? {}).map(([name, wanted]) =>
    isOneOf(wanted, headerOf(event, name)),
  );
  return [...named, ...headers];
}

/** Returns the value of one property of an event. */
export function propertyOf(event: ParkedEvent, name: (typeof filterProperties)[number]): string | undefined {
  if (name === 'fingerprint') return fingerprintOf(event);
  if (name === 'reason' || name === 'stop' || name === 'consumer') return event.diagnosis[name];
  return event[name];
}

export function headerOf({ headers }: Pick<ParkedEvent, 'headers'>, name: string): string | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined;
}

/** Returns the wanted values of a filter property as a list, even if the filter gives only one value. */
export function valuesOf<T extends string>(wanted: OneOf<T>): readonly T[] {
  return typeof wanted === 'string' ? [wanted] : wanted;
}

function isOneOf(wanted: OneOf, value: string | undefined): boolean {
  return value !== undefined && valuesOf(wanted).includes(value);
}

/**
 * Returns true if the filter names only topic, status and fingerprint. Engines store counts for these three,
 * so they need not read the events.
 */
export function filterIsCounted(filter: ParkedFilter): boolean {
  return Object.entries(filter).every(
    ([name, value]) => value === undefined || name === 'topic' || name === 'status' || name === 'fingerprint',
  );
}

/**
 * Returns the fingerprint by which parked events (events that wait for an operator) are grouped. For an event
 * without an error, this is its stop reason.
 */
export function fingerprintOf(event: Pick<ParkedEvent, 'diagnosis'>): string {
  return event.diagnosis.error?.fingerprint ?? event.diagnosis.stop;
}

/**
 * Returns true if the filter matches nearly all events. `status`, `isFree`, `not`, an empty `text` and empty
 * `headers` do not count.
 */
export function isEmptyFilter(filter: ParkedFilter): boolean {
  const { status, isFree, not, text, headers = {}, ...rest } = filter;
  const conditions = [text || undefined, ...Object.values(headers), ...Object.values(rest)];
  return conditions.every((condition) => condition === undefined);
}

/** Returns the first rule whose filter matches the event. Only one rule acts on an event. */
export function ruleFor(rules: readonly TriageRule[], event: ParkedEvent): TriageRule | undefined {
  return rules.find((rule) => matches(rule.filter, event));
}

type Term = readonly [isSo: (value: unknown) => boolean, what: string];

const isText = (value: unknown) => typeof value === 'string';
const isTextOrList = (value: unknown) => isText(value) || (Array.isArray(value) && value.every(isText));
const isTime = (value: unknown) => typeof value === 'number' && !Number.isNaN(value);
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const statuses: readonly unknown[] = [
  'parked',
  'replaying',
  'resolved',
  'discarded',
] satisfies ParkedStatus[];

const oneText: Term = [isText, 'a text'];
const texts: Term = [isTextOrList, 'a text, or a list of texts'];
const time: Term = [isTime, 'a time, in epoch ms'];

const properties: Readonly<Record<keyof ParkedProperties, Term>> = {
  topic: texts,
  type: texts,
  key: texts,
  tenant: texts,
  reason: texts,
  stop: texts,
  fingerprint: texts,
  consumer: texts,
  headers: [
    (value) => isObject(value) && Object.values(value).every(isTextOrList),
    'texts, or lists of texts, by the names of headers',
  ],
};

const terms: Readonly<Record<keyof ParkedFilter, Term>> = {
  ids: [(value) => Array.isArray(value) && value.every(isText), 'a list of ids'],
  ...properties,
  not: [isObject, `an object of ${Object.keys(properties).join(', ')}`],
  status: [
    (value) => (Array.isArray(value) ? value : [value]).every((each) => statuses.includes(each)),
    `${statuses.join(', ')}, or a list of those`,
  ],
  operation: oneText,
  replayedBy: oneText,
  isFree: [(value) => typeof value === 'boolean', 'true or false'],
  from: time,
  to: time,
  text: oneText,
};

/** Throws for an unknown field, because ignoring it would select too many events. */
export function assertFilter(filter: ParkedFilter): void {
  assertTerms('filter', filter, terms);
  if (filter.not) assertTerms('filter.not', filter.not, properties);
}

function assertTerms(path: string, given: object, known: Readonly<Record<string, Term>>): void {
  if (typeof given !== 'object' || given === null)
    throw new OptionsError(path, given, 'what is to be matched');
  for (const [name, value] of Object.entries(given)) {
    const term = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!term) throw new OptionsError(path, name, `one of ${Object.keys(known).join(', ')}`);
    const [isSo, what] = term;
    if (value !== undefined && !isSo(value)) throw new OptionsError(`${path}.${name}`, value, what);
  }
}

/** Throws for a filter that matches nearly all events. This prevents a replay of all events by mistake. */
export function assertFilterNotEmpty(filter: ParkedFilter): void {
  assertFilter(filter);
  if (isEmptyFilter(filter))
    throw new TriageError('EMPTY_FILTER', 'a filter that names nothing would match everything');
}

/** Throws a `TriageError` unless `act` names who makes the change (`who`) and the reason (`why`). */
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
