import type { Context } from 'holdfast';

/** The first argument of `fetch`: a URL or a Request. */
export type FetchInput = Parameters<typeof globalThis.fetch>[0];
/** A function that sends a request as the global `fetch` does. */
export type Fetch = (input: FetchInput, init?: RequestInit) => Promise<Response>;

export interface Sender {
  /**
   * Sends one attempt. When status and headers have arrived, it calls `arrived` with the response and
   * resolves with what `arrived` returns. From then on, only the signal `caller` can abort the body.
   * `isFresh`: use a new connection.
   */
  send(
    input: FetchInput,
    init: RequestInit | undefined,
    context: Context,
    caller: AbortSignal | undefined,
    holdfastHeader: string | undefined,
    isFresh: boolean,
    arrived: (response: Response) => Response,
  ): Promise<Response>;
  close(): Promise<void>;
}
