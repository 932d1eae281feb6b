import { compact, pretty, problemIn } from './json-text.ts';
import type { ShownEvent } from './story.tsx';

/** An edit that is not saved yet. It is kept when the user leaves the screen. */
export interface EventDraft {
  readonly payload: string;
  /** The headers, one per line: `name: value`. */
  readonly headers: string;
  /** The version of the event when the edit began. */
  readonly version: number;
}

const nameOf = (id: string) => `holdfast-draft-${id}`;

export function storedDraft(id: string): EventDraft | undefined {
  const text = sessionStorage.getItem(nameOf(id));
  return text === null ? undefined : (JSON.parse(text) as EventDraft);
}

export function storeDraft(id: string, draft: EventDraft): void {
  sessionStorage.setItem(nameOf(id), JSON.stringify(draft));
}

export function dropDraft(id: string): void {
  sessionStorage.removeItem(nameOf(id));
}

/** The texts with which an edit begins. */
export function textsOf(event: Pick<ShownEvent, 'payload' | 'headers' | 'version'>): EventDraft {
  return {
    payload: pretty(event.payload.text),
    headers: Object.entries(event.headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
    version: event.version,
  };
}

export interface ReadDraft {
  /** An error in the draft, as a sentence; absent: the draft can be saved. */
  readonly wrong?: string;
  /** The changed fields, in the form of the API; empty: nothing has changed. */
  readonly body: { readonly payload?: string; readonly headers?: Readonly<Record<string, string>> };
}

/**
 * Checks a draft and returns its changes. If the original payload was compact JSON, the edited one is saved
 * as compact JSON, too.
 */
export function readDraft(event: ShownEvent, draft: EventDraft): ReadDraft {
  const base = textsOf(event);
  const wasJson = problemIn(event.payload.text) === undefined;
  if (wasJson && draft.payload !== base.payload) {
    const problem = problemIn(draft.payload);
    if (problem)
      return { wrong: `Payload, line ${problem.line}, column ${problem.column}: ${problem.says}.`, body: {} };
  }
  const headers = headersIn(draft.headers);
  if (typeof headers === 'string') return { wrong: headers, body: {} };
  const wasCompact = wasJson && event.payload.text === compact(event.payload.text);
  return {
    body: {
      ...(draft.payload !== base.payload && { payload: wasCompact ? compact(draft.payload) : draft.payload }),
      ...(draft.headers !== base.headers && { headers }),
    },
  };
}

function headersIn(text: string): Record<string, string> | string {
  const headers: Record<string, string> = {};
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const colon = line.indexOf(':');
    if (colon < 1) return `Headers, line ${index + 1}: expected name: value, got "${line.slice(0, 60)}".`;
    const name = line.slice(0, colon).trim();
    if (Object.hasOwn(headers, name)) return `Headers, line ${index + 1}: "${name}" is there twice.`;
    headers[name] = line.slice(colon + 1).trim();
  }
  return headers;
}
