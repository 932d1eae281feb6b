import { type OutgoingHeaders, withHeaders } from './outgoing-headers.ts';
import type { Fetch, FetchInput, Sender } from './sender.ts';

/** Makes a sender for any `fetch`. It aborts attempts through an AbortSignal. */
export function signalSender(send: Fetch): Sender {
  return {
    async send(input, init, { signal }, caller, holdfastHeader, _isFresh, arrived) {
      // After the headers have come, the attempt's signal no longer aborts. The caller's signal still aborts the body.
      const sent: RequestInit = { ...init, signal: caller ? AbortSignal.any([signal, caller]) : signal };
      if (holdfastHeader !== undefined)
        sent.headers = withHeaders(headersOf(input, init), { holdfast: holdfastHeader }) as HeadersInit;
      const response = await send(input, sent);
      // This `fetch` ignored the abort. Nobody reads its response, so the body is cancelled.
      if (signal.aborted) void response.body?.cancel().catch(() => {});
      return arrived(response);
    },
    async close() {},
  };
}

/** Headers in `init` replace all headers of a Request, as in `fetch`. */
function headersOf(input: FetchInput, init: RequestInit | undefined): OutgoingHeaders {
  const own = typeof input === 'object' && 'headers' in input ? input.headers : undefined;
  return (init?.headers ?? own) as OutgoingHeaders;
}
