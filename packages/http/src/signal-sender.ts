import { type OutgoingHeaders, withHeaders } from './outgoing-headers.ts';
import type { Fetch, FetchInput, Sender } from './sender.ts';

/** Sends with any `fetch`, and aborts attempts through a signal. */
export function signalSender(send: Fetch): Sender {
  return {
    async send(input, init, { signal }, caller, holdfastHeader, _isFresh, arrived) {
      // After the response's headers the attempt's signal never aborts; the caller's still aborts the body.
      const sent: RequestInit = { ...init, signal: caller ? AbortSignal.any([signal, caller]) : signal };
      if (holdfastHeader !== undefined)
        sent.headers = withHeaders(headersOf(input, init), { holdfast: holdfastHeader }) as HeadersInit;
      const response = await send(input, sent);
      // The attempt was aborted, and this `fetch` ignores signals: its response is not used.
      if (signal.aborted) void response.body?.cancel().catch(() => {});
      return arrived(response);
    },
    async close() {},
  };
}

/** The headers of `init` replace those of a Request. */
function headersOf(input: FetchInput, init: RequestInit | undefined): OutgoingHeaders {
  const own = typeof input === 'object' && 'headers' in input ? input.headers : undefined;
  return (init?.headers ?? own) as OutgoingHeaders;
}
