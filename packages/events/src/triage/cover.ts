import type { Headers, ParkedEvent, Payload } from '@holdfast/contracts';

const mask = '[redacted]';
const depthMax = 64;

/**
 * Returns a copy of the event that may be shown to people. The values of the fields in `names` are masked in
 * the payload, headers, edits and original. A payload that is not JSON has no fields, so all of it is masked.
 */
export function covered(event: ParkedEvent, names: readonly string[]): ParkedEvent {
  if (names.length === 0) return event;
  const all = new Set(names);
  const { payload, headers, original, edits } = event;
  return {
    ...event,
    payload: coveredPayload(payload, all),
    headers: coveredHeaders(headers, all),
    original: original && {
      payload: coveredPayload(original.payload, all),
      headers: coveredHeaders(original.headers, all),
    },
    edits: edits.map((edit) => ({
      ...edit,
      changes: edit.changes.map((change) =>
        change.path.split('.').some((part) => all.has(part))
          ? { ...change, before: change.before && mask, after: change.after && mask }
          : change,
      ),
    })),
  };
}

function coveredPayload(payload: Payload, names: ReadonlySet<string>): Payload {
  if (typeof payload !== 'string') return mask;
  try {
    return JSON.stringify(masked(JSON.parse(payload), names, 0));
  } catch {
    return mask; // The payload is not JSON, or nested too deeply to be masked.
  }
}

function masked(value: unknown, names: ReadonlySet<string>, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > depthMax) throw new RangeError('the payload is nested too deeply');
  if (Array.isArray(value)) return value.map((each) => masked(each, names, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      names.has(name) ? mask : masked(each, names, depth + 1),
    ]),
  );
}

function coveredHeaders(headers: Headers, names: ReadonlySet<string>): Headers {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, names.has(name) ? mask : value]),
  );
}
