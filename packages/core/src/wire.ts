import type { Priority } from './run/run-options.ts';

/** The content of the `Holdfast` header of a request. */
export interface RequestFields {
  /** How many ms the caller still waits for the response (its patience). */
  readonly patienceMs?: number | undefined;
  /** Which attempt of the caller this request is, counted from 1. */
  readonly attempt?: number | undefined;
  /**
   * True: this caller, or a caller before it, retries the request. So the server must not retry its own
   * calls.
   */
  readonly owner?: boolean | undefined;
  /** How important the request is. An overloaded server refuses `sheddable` requests first. */
  readonly priority?: Priority | undefined;
}

/** The content of the `Holdfast` header of a response. */
export interface ResponseFields {
  /**
   * `safe`: the server did not process the request, so a retry is safe. `never`: the client must not retry.
   */
  readonly retry?: Retry | undefined;
}

/** What a server says about retrying a request. */
export type Retry = 'never' | 'safe' | 'unknown';

/** A `Headers` object, or an object with header names in lower case, as in `node:http`. */
export type HeaderSource =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** A value in a structured header (RFC 9651). */
export type BareItem = number | boolean | string | Token;

/** A token of a structured header (RFC 9651): a word without quotes. */
export class Token {
  readonly word: string;

  constructor(word: string) {
    this.word = word;
  }
}

/** Headers with more characters than this are not parsed. */
export const fieldLengthMax = 256;

const priorities: readonly string[] = ['critical', 'default', 'sheddable'];
const retries: readonly string[] = ['never', 'safe', 'unknown'];

/**
 * Reads the `Holdfast` header of a request. If it has no patience (how long the caller waits), the timeout
 * header of gRPC or Envoy is used instead. Invalid values are left out.
 */
export function readRequest(headers: HeaderSource): RequestFields {
  const ours = parseDictionary(fieldOf(headers, 'holdfast'));
  const patience = ours?.get('patience');
  const attempt = ours?.get('attempt');
  const owner = ours?.get('owner');
  return {
    patienceMs: isCount(patience, 0) ? patience : readForeignPatience(headers),
    attempt: isCount(attempt, 1) ? attempt : undefined,
    owner: typeof owner === 'boolean' ? owner : undefined,
    priority: wordOf(ours?.get('priority'), priorities) as Priority | undefined,
  };
}

/** Returns the value of the `Holdfast` header of a request, or undefined if no field is set. */
export function writeRequest({ patienceMs, attempt, owner, priority }: RequestFields): string | undefined {
  let text = '';
  // If the caller's patience has ended, 0 is written. An unlimited patience is not written.
  if (patienceMs !== undefined && patienceMs < 1e15) text = `patience=${Math.max(0, Math.floor(patienceMs))}`;
  if (attempt !== undefined) text += `${text && ', '}attempt=${attempt}`;
  if (owner !== undefined) text += `${text && ', '}owner=${owner ? '?1' : '?0'}`;
  if (priority !== undefined) text += `${text && ', '}priority=${priority}`;
  return text || undefined;
}

/** Reads the `Holdfast` header of a response. An invalid field is left out. */
export function readResponse(headers: HeaderSource): ResponseFields {
  const retry = parseDictionary(fieldOf(headers, 'holdfast'))?.get('retry');
  return { retry: wordOf(retry, retries) as Retry | undefined };
}

/** Returns the value of the `Holdfast` header of a response, or undefined if no field is set. */
export function writeResponse({ retry }: ResponseFields): string | undefined {
  return retry && `retry=${retry}`;
}

const key = '[a-z*][a-z0-9_.*-]*';
const item = [
  '-?\\d{1,12}\\.\\d{1,3}',
  '-?\\d{1,15}',
  '\\?[01]',
  '"(?:[ !#-\\[\\]-~]|\\\\["\\\\])*"',
  "[A-Za-z*][\\w!#$%&'*+.^`|~:/-]*",
  ':[A-Za-z0-9+/=]*:',
].join('|');
const member = new RegExp(
  `(${key})(?:=(${item}))?(?:; *${key}(?:=(?:${item}))?)*(?:[ \\t]*(,)[ \\t]*|$)`,
  'y',
);

/**
 * Parses a dictionary of a structured header (RFC 9651). Parameters of its members are ignored. Returns
 * undefined if the text is invalid, is too long, or contains an inner list.
 */
export function parseDictionary(text: string | undefined): Map<string, BareItem> | undefined {
  if (text === undefined || text.length > fieldLengthMax) return undefined;
  const trimmed = text.replace(/^ +| +$/g, '');
  const found = new Map<string, BareItem>();
  let at = 0;
  while (at < trimmed.length) {
    member.lastIndex = at;
    const match = member.exec(trimmed);
    if (!match) return undefined;
    const [whole, name = '', value, comma] = match;
    at += whole.length;
    // A dictionary must not end with a comma.
    if (comma && at === trimmed.length) return undefined;
    found.delete(name);
    found.set(name, value === undefined ? true : bareItem(value));
  }
  return found;
}

function bareItem(text: string): BareItem {
  const first = text[0] as string;
  if (first === '?') return text === '?1';
  if (first === '"') return text.slice(1, -1).replace(/\\(.)/g, '$1');
  if (first === ':') return text.slice(1, -1);
  return /[-\d]/.test(first) ? Number(text) : new Token(text);
}

const unitsMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

function readForeignPatience(headers: HeaderSource): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(fieldOf(headers, 'grpc-timeout') ?? '') ?? [];
  if (amount !== undefined) return Math.floor(Number(amount) * (unitsMs[unit] as number));
  const envoy = fieldOf(headers, 'x-envoy-expected-rq-timeout-ms') ?? '';
  // Envoy sends 0 when there is no timeout.
  return /^\d{1,15}$/.test(envoy) && Number(envoy) > 0 ? Number(envoy) : undefined;
}

function fieldOf(headers: HeaderSource, name: string): string | undefined {
  const value =
    typeof headers.get === 'function'
      ? headers.get(name)
      : (headers as Readonly<Record<string, string | readonly string[] | undefined>>)[name];
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'string' ? value : undefined;
}

function isCount(value: BareItem | undefined, least: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least;
}

function wordOf(value: BareItem | undefined, known: readonly string[]): string | undefined {
  return value instanceof Token && known.includes(value.word) ? value.word : undefined;
}
