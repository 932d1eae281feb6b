import type { Context } from 'holdfast';

export type FetchInput = Parameters<typeof globalThis.fetch>[0];
export type Fetch = (input: FetchInput, init?: RequestInit) => Promise<Response>;

/** How one attempt is sent. */
export interface Sender {
  /**
   * Resolves with what `arrived` gives, which gets the response as soon as its head has come. The signal `caller` aborts the
   * body as well; the attempt's own signal must not. `isFresh`: use a new connection.
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
