import type { Fetch, FetchInput, Sender } from './fetch.ts';
import { type OutgoingHeaders, withHeaders } from './outgoing-headers.ts';

/** Sends with any `fetch`, and ends attempts by their signal. */
export function signalSender(send: Fetch): Sender {
  return {
    async send(input, init, { signal }, caller, said, _isFresh, arrived) {
      // After the headers the attempt's signal is left alone, but the caller's still ends the body.
      const sent: RequestInit = { ...init, signal: caller ? AbortSignal.any([signal, caller]) : signal };
      if (said !== undefined)
        sent.headers = withHeaders(headersOf(input, init), { holdfast: said }) as HeadersInit;
      const response = await send(input, sent);
      // A fetch that does not listen to signals: nobody waits for this response any more.
      if (signal.aborted) void response.body?.cancel().catch(() => {});
      return arrived(response);
    },
    async close() {},
  };
}

/** Those of `init` stand in for those of a Request. */
function headersOf(input: FetchInput, init: RequestInit | undefined): OutgoingHeaders {
  const own = typeof input === 'object' && 'headers' in input ? input.headers : undefined;
  return (init?.headers ?? own) as OutgoingHeaders;
}
