import type { Fetch, Sender } from './fetch.ts';

/** Sends with any `fetch`, and ends attempts by their signal. */
export function signalSender(send: Fetch): Sender {
  return {
    async send(input, init, { signal }, caller) {
      // After the headers the attempt's signal is left alone, but the caller's still ends the body.
      const response = await send(input, {
        ...init,
        signal: caller ? AbortSignal.any([signal, caller]) : signal,
      });
      // A fetch that does not listen to signals: nobody waits for this response any more.
      if (signal.aborted) void response.body?.cancel().catch(() => {});
      return response;
    },
    async close() {},
  };
}
