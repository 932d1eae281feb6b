import { type Flag, type Given, StoreUnavailable } from './command.ts';
import { textOf } from './given-values.ts';
import type { Terminal } from './terminal.ts';

export const adminFlags: Record<'admin' | 'token', Flag> = {
  admin: {
    value: 'URL',
    says: 'the admin API of the gateway; HOLDFAST_GATEWAY or http://127.0.0.1:9901 unless given',
  },
  token: {
    value: 'token',
    says: 'its token; HOLDFAST_GATEWAY_TOKEN unless given, which a list of processes does not show',
  },
};

export interface AdminAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each command reads what its path gives
  readonly body: any;
}

/**
 * Calls the admin API of a running gateway. Throws if the token is wrong, or for a status of 500 and above.
 */
export async function askGateway(
  given: Given,
  terminal: Terminal,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<AdminAnswer> {
  const base = textOf(given, 'admin') ?? terminal.env.HOLDFAST_GATEWAY ?? 'http://127.0.0.1:9901';
  const token = textOf(given, 'token') ?? terminal.env.HOLDFAST_GATEWAY_TOKEN ?? '';
  const url = URL.parse(path, base);
  if (!url)
    throw new StoreUnavailable(`--admin: expected a URL such as "http://127.0.0.1:9901", got "${base}".`);
  const response = await send(url, method, token, body, terminal.signal);
  const text = await response.text();
  if (response.status === 401)
    throw new StoreUnavailable(
      `the gateway at ${url.origin} refuses the token; say --token or HOLDFAST_GATEWAY_TOKEN.`,
    );
  const parsed = parse(text);
  if (parsed === undefined || response.status >= 500)
    throw new StoreUnavailable(
      `the gateway at ${url.origin} gave ${response.status}: ${reason(parsed, text)}.`,
    );
  return { status: response.status, body: parsed };
}

async function send(
  url: URL,
  method: string,
  token: string,
  body: unknown,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await fetch(url, {
      method,
      headers: { authorization: `Bearer ${token}` },
      body: body === undefined ? null : JSON.stringify(body),
      signal,
    });
  } catch (cause) {
    const { code, message } = ((cause as Error).cause ?? cause) as NodeJS.ErrnoException;
    throw new StoreUnavailable(`no gateway can be asked at ${url.origin}: ${code ?? message}.`, { cause });
  }
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function reason(parsed: Record<string, unknown> | undefined, text: string): string {
  return String(parsed?.error ?? text.slice(0, 200))
    .replace(/^\w*Error: /, '')
    .replace(/\.$/, '');
}
