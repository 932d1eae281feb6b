import type { Envelope } from '@holdfast/contracts';
import { decode } from '../publish/payload-format.ts';

/** What stands where a value was. */
const covered = '[redacted]';
/** A shorter value would cover half of every text: those are found by their name alone. */
const valueLengthMin = 4;
const depthMax = 16;

/**
 * Covers the values of named fields in a text: wherever it says `name: value` in one of the usual ways, and wherever a value
 * that this event holds under such a name appears.
 */
export function redaction(names: readonly string[], event: Envelope): (text: string) => string {
  if (names.length === 0) return (text) => text;
  const values = [...new Set(valuesOf(new Set(names), event))].sort((a, b) => b.length - a.length);
  const pattern = assignments(names);
  return (text) => {
    let shown = text.replace(pattern, `$1${covered}`);
    for (const value of values) shown = shown.replaceAll(value, covered);
    return shown;
  };
}

/** `"card": "4111"`, `card=4111`, `card: 4111`. */
function assignments(names: readonly string[]): RegExp {
  const any = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  return new RegExp(`(\\b(?:${any})["']?\\s*[:=]\\s*)("(?:[^"\\\\]|\\\\.)*"|'[^']*'|[^\\s,;}\\]]+)`, 'g');
}

function* valuesOf(names: ReadonlySet<string>, { payload, headers }: Envelope): Generator<string> {
  yield* within(names, headers, 0, false);
  try {
    yield* within(names, decode('json', payload), 0, false);
  } catch {
    // Not JSON: it has no names.
  }
}

function* within(
  names: ReadonlySet<string>,
  value: unknown,
  depth: number,
  isNamed: boolean,
): Generator<string> {
  if (typeof value === 'object' && value !== null) {
    if (depth === depthMax) return;
    for (const [name, each] of Object.entries(value)) {
      yield* within(names, each, depth + 1, isNamed || names.has(name));
    }
  } else if (isNamed && String(value).length >= valueLengthMin) yield String(value);
}
