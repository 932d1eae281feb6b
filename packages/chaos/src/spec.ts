import { OptionsError } from 'holdfast';
import {
  count,
  duration,
  type Field,
  flag,
  list,
  number,
  readTable,
  type SettingsOf,
  shape,
  text,
  word,
} from 'holdfast/fields';
import { delay } from './distribution.ts';
import type { FaultSpec } from './fault-spec.ts';
import { required, type VariantSettings, type VariantSpec, variants } from './variants.ts';

/** Where faults are injected. Not every place supports all kinds of faults. */
export type Place = 'fetch' | 'handler' | 'proxy';

/** The body of an answer. It may be empty. */
const body: Field<string, string> = {
  ...text(),
  read: (value) => (typeof value === 'string' ? value : undefined),
};

const status: Field<number, number> = {
  ...count(503, 200),
  max: 599,
  read: (value) => (typeof value === 'number' && value <= 599 ? count(503, 200).read(value, '') : undefined),
};

const headers: Field<Readonly<Record<string, string>>, Readonly<Record<string, string>>> = {
  kind: 'an object of header names and texts',
  read(value) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    try {
      new Headers(value as Record<string, string>);
      return value as Record<string, string>;
    } catch {
      return undefined;
    }
  },
};

/**
 * All kinds of faults have these fields: when a fault is active, and which calls, events or exchanges it
 * hits.
 */
const when = {
  rate: number(1, 0, 1),
  from: duration(0),
  until: duration(),
  flap: shape({ up: duration(), down: duration() }),
  first: count(),
  every: count(1, 1),
  match: shape({ method: list(text()), path: list(text()), target: list(text()) }),
};

type Way = 'request' | 'response';
const way = (fallback: Way) => word<Way>(fallback, 'request', 'response');
const ways = (fallback: Way | 'both') => word<Way | 'both'>(fallback, 'request', 'response', 'both');

const kinds = {
  latency: { ...when, delay: required(delay), direction: ways('response') },
  slow: { ...when, bytesPerSecond: required(count(undefined, 1)), direction: ways('response') },
  hang: { ...when, direction: ways('both') },
  refuse: { ...when, cut: flag(false) },
  reset: { ...when, afterBytes: count(0), direction: way('response') },
  truncate: { ...when, afterBytes: count(0) },
  error: { ...when, code: text('ECONNRESET'), message: text(), direction: way('request') },
  status: {
    ...when,
    status,
    retryAfter: duration(),
    retryAfterAs: word('seconds', 'seconds', 'date'),
    headers,
    body,
    direction: way('request'),
  },
  duplicate: { ...when, together: flag(false) },
  reorder: { ...when, by: count(1, 1), within: duration('1s') },
};

/** The kinds of faults. */
export type FaultKind = keyof typeof kinds;
/**
 * The type of a fault before validation, derived from `kinds`. It is the same as `FaultSpec`, which also has
 * the comments.
 */
export type ReadFault = VariantSpec<'kind', typeof kinds>;
/** A fault with its defaults filled in and its durations in ms. */
export type FaultSettings<K extends FaultKind = FaultKind> = Extract<
  VariantSettings<'kind', typeof kinds>,
  { readonly kind: K }
>;

/** The faults to inject, as plain JSON. */
export interface ChaosSpec {
  /** The seed of the random numbers. The same seed gives the same faults. Default: `0`. */
  seed?: number | string | undefined;
  /**
   * The faults: what goes wrong, and when. Several faults may hit the same call, event or exchange. Required.
   */
  faults: readonly FaultSpec[];
}

/** A `ChaosSpec` after validation, with defaults filled in. */
export interface ChaosPlan {
  readonly seed: number | string;
  readonly faults: readonly FaultSettings[];
}

const table = {
  seed: {
    kind: 'a number or a text',
    default: 0,
    read: (value: unknown) => (typeof value === 'number' || typeof value === 'string' ? value : undefined),
  } satisfies Field<number | string, number | string>,
  faults: required(list(variants('kind', kinds))),
};

const doable: Readonly<Record<Place, readonly FaultKind[]>> = {
  fetch: ['latency', 'slow', 'hang', 'refuse', 'reset', 'truncate', 'error', 'status'],
  handler: ['latency', 'hang', 'error', 'duplicate', 'reorder'],
  proxy: ['latency', 'slow', 'hang', 'refuse', 'reset', 'truncate'],
};

/** Validates a `ChaosSpec`. With `place`, it also rejects faults that this place does not support. */
export function readChaos(spec: ChaosSpec, place?: Place): ChaosPlan {
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) {
    throw new OptionsError('spec', spec, 'an object with faults');
  }
  const plan: SettingsOf<typeof table> = readTable(table, spec);
  if (plan.faults === undefined) throw new OptionsError('faults', undefined, table.faults.kind);
  plan.faults.forEach((fault, index) => {
    assertTimes(fault, `faults[${index}]`);
    if (place) assertPlace(fault, place, `faults[${index}]`);
  });
  return plan;
}

function assertTimes({ from, until, flap }: FaultSettings, path: string): void {
  if (until !== undefined && until <= from) {
    throw new OptionsError(`${path}.until`, until, `a time after from, ${from} ms`);
  }
  if (flap === undefined) return;
  for (const key of ['up', 'down'] as const) {
    if (!(flap[key] > 0)) {
      throw new OptionsError(`${path}.flap.${key}`, flap[key], 'a duration above zero such as "5s"');
    }
  }
}

/**
 * Throws if `place` does not support the fault. If the fault were ignored, a test would pass for the wrong
 * reason.
 */
function assertPlace(fault: FaultSettings, place: Place, path: string): void {
  if (!doable[place].includes(fault.kind)) {
    throw new OptionsError(`${path}.kind`, fault.kind, `one of ${doable[place].join(', ')} for a ${place}`);
  }
  if (place === 'proxy' && (fault.match?.method ?? fault.match?.path)) {
    throw new OptionsError(
      `${path}.match`,
      fault.match,
      'no method and no path for a proxy, which knows only bytes',
    );
  }
  if (place === 'fetch' && fault.kind === 'slow' && fault.direction !== 'response') {
    throw new OptionsError(`${path}.direction`, fault.direction, '"response" for a fetch');
  }
  if (place === 'fetch' && fault.kind === 'reset' && fault.direction === 'request' && fault.afterBytes > 0) {
    throw new OptionsError(
      `${path}.afterBytes`,
      fault.afterBytes,
      '0 for a fetch, whose request goes out whole or not at all',
    );
  }
}
