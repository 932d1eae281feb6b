import type { Headers, Payload } from './envelope.ts';

/** One changed field. A new field has no `before`, and a removed field has no `after`. */
export interface EditChange {
  /** The path of the field, such as `payload.lines.0.price`. For a payload that is not JSON, it is `payload`. */
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

interface Editable {
  readonly payload: Payload;
  readonly headers: Headers;
}

const shownMax = 200;

/** Lists the fields that an edit changed, for people to read. Long values are cut. */
export function editDiff(before: Editable, after: Editable): EditChange[] {
  return [
    ...differences('payload', parsed(before.payload), parsed(after.payload)),
    ...differences('headers', before.headers, after.headers),
  ];
}

function differences(path: string, before: unknown, after: unknown): EditChange[] {
  if (!isTree(before) || !isTree(after) || Array.isArray(before) !== Array.isArray(after)) {
    const [old, now] = [show(before), show(after)];
    return old === now && same(before, after) ? [] : [{ path, before: old, after: now }];
  }
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => differences(`${path}.${name}`, before[name], after[name]));
}

function parsed(payload: Payload): unknown {
  if (typeof payload !== 'string')
    return `${payload.length} bytes: ${Array.from(payload.subarray(0, 32)).join(' ')}`;
  try {
    return JSON.parse(payload);
  } catch {
    return payload;
  }
}

function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function same(before: unknown, after: unknown): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}

function show(value: unknown): string | undefined {
  return JSON.stringify(value)?.slice(0, shownMax);
}
