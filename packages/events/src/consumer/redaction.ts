import type { Envelope } from '@holdfast/contracts';
import { decode } from '../publish/payload-format.ts';

const mask = '[redacted]';
/**
 * Values with fewer characters than this are not searched for in a text, because such short texts often occur
 * by chance. They are masked only after their field name.
 */
const valueLengthMin = 4;
const depthMax = 16;

/**
 * Returns a function that masks secrets in a text. It masks what follows `name:` or `name=`, and also the
 * values that the fields `names` have in the payload and headers of the event.
 */
export function redaction(names: readonly string[], event: Envelope): (text: string) => string {
  if (names.length === 0) return (text) => text;
  const values = [...new Set(valuesOf(new Set(names), event))].sort((a, b) => b.length - a.length);
  const pattern = assignments(names);
  return (text) => {
    let shown = text.replace(pattern, `$1${mask}`);
    for (const value of values) shown = shown.replaceAll(value, mask);
    return shown;
  };
}

/**
 * Returns a pattern that matches a field name and its value: `"card": "4111"`, `card=4111` or `card: 4111`.
 */
function assignments(names: readonly string[]): RegExp {
  const any = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  return new RegExp(`(\\b(?:${any})["']?\\s*[:=]\\s*)("(?:[^"\\\\]|\\\\.)*"|'[^']*'|[^\\s,;}\\]]+)`, 'g');
}

function* valuesOf(names: ReadonlySet<string>, { payload, headers }: Envelope): Generator<string> {
  yield* namedValues(names, headers, 0, false);
  try {
    yield* namedValues(names, decode('json', payload), 0, false);
  } catch {
    // The payload is not JSON, so it has no named fields.
  }
}

function* namedValues(
  names: ReadonlySet<string>,
  value: unknown,
  depth: number,
  isNamed: boolean,
): Generator<string> {
  if (typeof value === 'object' && value !== null) {
    if (depth === depthMax) return;
    for (const [name, each] of Object.entries(value)) {
      yield* namedValues(names, each, depth + 1, isNamed || names.has(name));
    }
  } else if (isNamed && String(value).length >= valueLengthMin) yield String(value);
}
