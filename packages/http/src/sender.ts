import type { Context } from 'holdfast';

/** What `fetch` takes as its first argument. */
export type FetchInput = Parameters<typeof globalThis.fetch>[0];
/** A function that sends a request as the global `fetch` does. */
export type Fetch = (input: FetchInput, init?: RequestInit) => Promise<Response>;

export interface Sender {
  /**
   * Sends one attempt. When status and headers have come, it calls `arrived` and resolves with the result. Later only
   * `caller` may abort the body. `isFresh`: use a new connection.
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
