import { type OutgoingHeaders, withHeaders } from './outgoing-headers.ts';
import type { Fetch, FetchInput, Sender } from './sender.ts';

/** Creates a sender for any `fetch` function. It aborts attempts through an AbortSignal. */
export function signalSender(send: Fetch): Sender {
  return {
    async send(input, init, { signal }, caller, holdfastHeader, _isFresh, arrived) {
      // After the response headers have arrived, the signal of the attempt aborts nothing. The caller's
      // signal can still abort the body.
      const sent: RequestInit = { ...init, signal: caller ? AbortSignal.any([signal, caller]) : signal };
      if (holdfastHeader !== undefined)
        sent.headers = withHeaders(headersOf(input, init), { holdfast: holdfastHeader }) as HeadersInit;
      const response = await send(input, sent);
      // This `fetch` function has ignored the abort. The response is not used, so cancel its body.
      if (signal.aborted) void response.body?.cancel().catch(() => {});
      return arrived(response);
    },
    async close() {},
  };
}

/** Returns the headers of the call. As in `fetch`, headers in `init` replace all headers of a Request. */
function headersOf(input: FetchInput, init: RequestInit | undefined): OutgoingHeaders {
  const own = typeof input === 'object' && 'headers' in input ? input.headers : undefined;
  return (init?.headers ?? own) as OutgoingHeaders;
}
