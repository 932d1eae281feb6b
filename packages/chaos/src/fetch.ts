import { type Clock, sleep, systemClock } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { faultyBody } from './body.ts';
import { type Chaos, type ChaosOptions, chaosOptions, RunningChaos } from './chaos.ts';
import { type Destination, failure, fetchFailed, terminated } from './failures.ts';
import type { ChaosSpec, FaultSettings } from './spec.ts';
import type { Fault } from './strike.ts';
import { untilAborted } from './until-aborted.ts';

/** The options of `chaosFetch`. */
export interface ChaosFetchOptions extends ChaosOptions {
  /** The `fetch` that sends the requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

const known: Readonly<Record<keyof ChaosFetchOptions, true>> = { fetch: true, ...chaosOptions };

/** A `fetch` with faults. Its property `chaos` changes the faults and counts them. */
export type ChaosFetch = typeof globalThis.fetch & { readonly chaos: Chaos };

/** Creates a `fetch` that fails as `spec` says, with the same errors as undici (Node's HTTP client). */
export function chaosFetch(spec: ChaosSpec, options: ChaosFetchOptions = {}): ChaosFetch {
  assertKnownFields(known, options);
  const { clock = systemClock, fetch = (...args) => globalThis.fetch(...args) } = options;
  const chaos = new RunningChaos('fetch', spec, options);

  const faulty: typeof globalThis.fetch = async (input, init) => {
    const request = typeof input === 'object' && 'url' in input ? input : undefined;
    const url = URL.parse(request?.url ?? String(input));
    const signal = init?.signal === undefined ? request?.signal : init.signal;
    // A call with an invalid URL or an aborted signal is not counted: the real `fetch` throws the error.
    if (url === null || signal?.aborted) return fetch(input, init);
    const fault = chaos.strike({
      method: init?.method ?? request?.method ?? 'GET',
      path: url.pathname,
      target: url.host,
    });
    return fault ? suffer(fault, { clock, signal, url }, () => fetch(input, init)) : fetch(input, init);
  };
  return Object.assign(faulty, { chaos });
}

interface Sending {
  readonly clock: Clock;
  readonly signal: AbortSignal | null | undefined;
  readonly url: URL;
}

async function suffer(fault: Fault, sending: Sending, send: () => Promise<Response>): Promise<Response> {
  const { clock, signal } = sending;
  if (fault.requestDelayMs > 0) await sleep(clock, fault.requestDelayMs, signal ?? undefined);
  const unsent = await instead('request', fault, sending);
  if (unsent) return unsent;

  const response = await send();
  try {
    if (fault.responseDelayMs > 0) await sleep(clock, fault.responseDelayMs, signal ?? undefined);
    const lost = await instead('response', fault, sending);
    if (lost === undefined) return withFaultyBody(response, fault, sending);
    discard(response);
    return lost;
  } catch (error) {
    discard(response);
    throw error;
  }
}

/**
 * Applies a fault that replaces the request or the answer, such as a reset. Returns `undefined` if there is
 * no such fault.
 */
async function instead(
  direction: 'request' | 'response',
  { ending }: Fault,
  { clock, signal, url }: Sending,
): Promise<Response | undefined> {
  if (ending === undefined) return undefined;
  const to: Destination = {
    host: url.hostname,
    port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
  };
  const isBefore = direction === 'request';
  if (ending.kind === 'refuse' && isBefore) throw fetchFailed(failure('ECONNREFUSED', undefined, to));
  if (ending.kind === 'refuse' || ending.kind === 'truncate') return undefined;
  if (ending.direction !== direction && !(ending.direction === 'both' && isBefore)) return undefined;
  switch (ending.kind) {
    case 'hang':
      return untilAborted(signal);
    case 'reset':
      if (ending.afterBytes > 0) return undefined;
      // If a connection breaks before any byte is written, Node reports that the system call `connect`
      // failed.
      throw fetchFailed(failure('ECONNRESET', undefined, to, isBefore ? 'connect' : 'read'));
    case 'error':
      // If the request was sent, the error must name the system call `read`, not `connect`.
      throw fetchFailed(failure(ending.code, ending.message, to, isBefore ? undefined : 'read'));
    case 'status':
      return answer(ending, clock, url);
  }
}

function answer(fault: FaultSettings<'status'>, clock: Clock, url: URL): Response {
  const headers = new Headers(fault.headers);
  if (fault.retryAfter !== undefined) headers.set('retry-after', retryAfter(fault, clock));
  const hasBody = ![204, 205, 304].includes(fault.status);
  const response = new Response(hasBody ? (fault.body ?? '') : null, { status: fault.status, headers });
  return resembling(response, { url: url.href, redirected: false, type: 'basic' });
}

/** Returns the value of `Retry-After`. It is rounded up, so that a client does not retry too early. */
function retryAfter({ retryAfter = 0, retryAfterAs }: FaultSettings<'status'>, clock: Clock): string {
  if (retryAfterAs === 'seconds') return String(Math.ceil(retryAfter / 1000));
  return new Date(Math.ceil((clock.epochMs() + retryAfter) / 1000) * 1000).toUTCString();
}

function withFaultyBody(response: Response, fault: Fault, { clock, signal, url }: Sending): Response {
  const { ending, responseBytesPerSecond } = fault;
  const breaks = ending?.kind === 'truncate' || (ending?.kind === 'reset' && ending.direction === 'response');
  if (response.body === null || (!breaks && responseBytesPerSecond === Infinity)) return response;
  const to: Destination = { host: url.hostname, port: Number(url.port) };
  const body = faultyBody(response.body, {
    clock,
    signal,
    bytesPerSecond: responseBytesPerSecond,
    bytesMax: breaks ? ending.afterBytes : Infinity,
    broken: () =>
      terminated(failure(ending?.kind === 'truncate' ? 'UND_ERR_SOCKET' : 'ECONNRESET', undefined, to)),
  });
  return resembling(new Response(body, response), response);
}

/** Sets `url`, `redirected` and `type` of a response, which the constructor of `Response` cannot set. */
function resembling(
  made: Response,
  { url, redirected, type }: Pick<Response, 'url' | 'redirected' | 'type'>,
) {
  const clone = () => resembling(Response.prototype.clone.call(made), { url, redirected, type });
  return Object.defineProperties(made, {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
    clone: { value: clone },
  });
}

/** Cancels the body of a response that is not returned, so that its connection becomes free. */
function discard(response: Response): void {
  response.body?.cancel().catch(() => {});
}
