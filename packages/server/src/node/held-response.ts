import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type ServerResponse,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';
import { ClientGoneError } from '../exchange.ts';
import type { HandlerResponse, PlainResponse, ResponseHeaders } from '../response.ts';
import type { MaybeHttp2 } from './response-end.ts';

type Chunk = string | Uint8Array;
type WriteHead = (status: number, ...rest: unknown[]) => ServerResponse;

/**
 * Sends a whole response with its `content-length`, and ends it. No part of a response may have been sent
 * before.
 */
export function sendResponse(response: ServerResponse, { status, headers, body }: PlainResponse): void {
  const all: OutgoingHttpHeaders = { ...(headers as OutgoingHttpHeaders) };
  // The response to HEAD keeps a given content-length, which is the length of the GET response.
  const hasLength = response.req.method === 'HEAD' && all['content-length'] !== undefined;
  if (body !== null && status !== 204 && !hasLength) all['content-length'] = Buffer.byteLength(body);
  response.writeHead(status, all);
  response.end(body ?? undefined);
}

/** Sends `instead`. Before that, it removes the headers that describe the body of the handler's response. */
export function sendReplacement(response: ServerResponse, instead: PlainResponse): void {
  for (const name of response.getHeaderNames()) if (describesBody(name)) response.removeHeader(name);
  sendResponse(response, instead);
}

/** A response that is held back. */
export interface HeldResponse {
  /** Discards the response of the handler. */
  discard(): void;
  /** Sets a header, also while `review` runs. At that time, the handler can set none. */
  setHeader(name: string, value: string): void;
}

/**
 * Holds a response back until `review` has checked it. A stream, or a body longer than `bytesMax`, is not
 * shown to `review`.
 */
export function holdResponse(
  response: ServerResponse,
  bytesMax: number,
  review: (response: HandlerResponse) => Promise<PlainResponse | undefined>,
): HeldResponse {
  const original = {
    writeHead: response.writeHead.bind(response) as WriteHead,
    write: response.write.bind(response) as (...args: unknown[]) => boolean,
    end: response.end.bind(response) as (...args: unknown[]) => ServerResponse,
    flushHeaders: response.flushHeaders.bind(response),
    setHeader: response.setHeader.bind(response),
    appendHeader: response.appendHeader.bind(response),
    removeHeader: response.removeHeader.bind(response),
    destroy: response.destroy.bind(response),
  };
  let head: [status: number, ...rest: unknown[]] | undefined;
  const chunks: Chunk[] = [];
  let length = 0;
  let ended = false;
  let isReviewed = false;
  let state: 'held' | 'released' | 'replaced' = 'held';
  const pendingCallbacks: unknown[][] = [];

  const holding = {
    writeHead(...args: [number, ...unknown[]]) {
      if (state !== 'held') return state === 'released' ? original.writeHead(...args) : response;
      if (head) return response;
      // An invalid header must throw here, in the handler, and not later.
      for (const [name, value] of Object.entries(headersOf(response, args))) {
        validateHeaderName(name);
        validateHeaderValue(name, value as string);
      }
      head = args;
      return response;
    },
    flushHeaders() {
      if (state === 'released') original.flushHeaders();
      else if (state === 'held') submit(false);
    },
    write(...args: unknown[]) {
      if (state === 'released') return original.write(...args);
      // Call the callback before the bytes are sent. Otherwise, a handler that waits for the callback would
      // wait forever.
      const isDiscarded = state === 'replaced' || ended;
      if (isDiscarded || !isReviewed) callCallback(args);
      else pendingCallbacks.push(args);
      if (isDiscarded) return true;
      collect(args);
      const type = headersOf(response, head)['content-type'];
      if (length > bytesMax || String(type).startsWith('text/event-stream')) submit(false);
      return !isReviewed;
    },
    end(...args: unknown[]) {
      if (state === 'released') return original.end(...args);
      if (state === 'replaced') callCallback(args);
      else if (!ended) {
        pendingCallbacks.push(args);
        collect(args);
        ended = true;
        submit(length <= bytesMax);
      }
      return response;
    },
    // `review` has seen the headers, so they must not change.
    setHeader: (...args: Parameters<typeof original.setHeader>) =>
      state === 'held' && isReviewed ? response : original.setHeader(...args),
    appendHeader: (...args: Parameters<typeof original.appendHeader>) =>
      state === 'held' && isReviewed ? response : original.appendHeader(...args),
    removeHeader(name: string) {
      if (state !== 'held' || !isReviewed) original.removeHeader(name);
    },
    destroy(error?: Error) {
      if (state === 'held' && !isReviewed) {
        isReviewed = true;
        // Ignore errors of `review`. If it cannot record the outcome of an idempotency key, the lease of the
        // key ends later, as after a crash.
        review({ ...handlerHead(), body: undefined }).catch(() => {});
      }
      return original.destroy(error);
    },
  };

  /**
   * Restores the original methods of the response. A method that other middleware has replaced meanwhile
   * stays.
   */
  function release(): void {
    state = 'released';
    const now = response as unknown as Record<string, unknown>;
    for (const name of Object.keys(holding) as (keyof typeof holding)[]) {
      if (now[name] === holding[name]) now[name] = original[name];
    }
    Reflect.deleteProperty(response, 'headersSent');
  }

  function discard(): void {
    if (state !== 'held') return;
    state = 'replaced';
    Object.assign(response, original);
    Reflect.deleteProperty(response, 'headersSent');
  }

  function handlerHead() {
    return { status: head?.[0] ?? response.statusCode, headers: headersOf(response, head) };
  }

  function submit(whole: boolean): void {
    if (isReviewed) return;
    isReviewed = true;
    const body = !whole ? undefined : chunks.length === 1 ? chunks[0] : joined(chunks);
    const reviewed = { ...handlerHead(), body };
    // HTTP/2 has no status message, and Node warns when `statusMessage` is read.
    const message = (response as MaybeHttp2).stream ? {} : { statusMessage: response.statusMessage };
    review(reviewed)
      .then((instead) => {
        if (instead) replace(instead);
        else {
          Object.assign(response, { statusCode: reviewed.status, ...message });
          send();
        }
        for (const each of pendingCallbacks) callCallback(each);
      })
      .catch((error: unknown) => original.destroy(error as Error));
  }

  function replace(instead: PlainResponse): void {
    discard();
    sendReplacement(response, instead);
    discardWrites(response);
  }

  function send(): void {
    release();
    if (head) original.writeHead(...head);
    // With a single `end` call, Node adds a `content-length`.
    if (ended && chunks.length <= 1) original.end(chunks[0]);
    else {
      for (const chunk of chunks) original.write(chunk);
      if (ended) original.end();
      else response.emit('drain');
    }
  }

  function collect([chunk, encoding]: readonly unknown[]): void {
    const text = typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined;
    if (chunk === undefined || chunk === null || typeof chunk === 'function') return;
    const plain = typeof chunk === 'string' && text !== undefined && text !== 'utf8' && text !== 'utf-8';
    const piece = plain ? Buffer.from(chunk as string, text) : (chunk as Chunk);
    length += Buffer.byteLength(piece);
    chunks.push(piece);
  }

  Object.assign(response, holding);
  // Between the first write and `end`, `headersSent` is true. So an error handler does not start a second
  // response.
  Object.defineProperty(response, 'headersSent', {
    configurable: true,
    get: () => !ended && (head !== undefined || chunks.length > 0),
  });
  return {
    discard,
    setHeader(name, value) {
      if (state === 'held') original.setHeader(name, value);
      else response.setHeader(name, value);
    },
  };
}

export function discardWrites(response: ServerResponse): void {
  const silent = () => response;
  Object.assign(response, {
    writeHead: silent,
    setHeader: silent,
    appendHeader: silent,
    removeHeader: () => {},
    flushHeaders: () => {},
    write(...args: unknown[]) {
      callCallback(args);
      return true;
    },
    end(...args: unknown[]) {
      callCallback(args);
      return response;
    },
  });
}

function callCallback(args: readonly unknown[]): void {
  const callback = args.find((each) => typeof each === 'function') as (() => void) | undefined;
  if (callback) process.nextTick(callback);
}

/**
 * Reads the whole request body and puts it back for the handler. Resolves with `undefined` if it is longer
 * than `bytesMax`.
 */
export function bufferBody(request: IncomingMessage, bytesMax: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  return new Promise((resolve, reject) => {
    const stop = () => request.off('readable', read).off('end', end).off('error', gone).off('close', gone);
    const gone = () => {
      stop();
      reject(new ClientGoneError());
    };
    const finish = () => {
      stop();
      const body = length > bytesMax ? undefined : Buffer.concat(chunks, length);
      // `unshift` fails after the `end` event, so it runs in the same tick as the last read.
      if (body && length > 0) request.unshift(body);
      resolve(body);
    };
    const end = () => (hasArrived(request) ? finish() : gone());
    const read = () => {
      if (length === 0 && isEmpty(request)) return finish();
      for (let chunk: Buffer | null = request.read(); chunk !== null; chunk = request.read()) {
        chunks.push(chunk);
        length += chunk.length;
      }
      if (hasArrived(request) || length > bytesMax) finish();
    };
    // In the next tick, Node has parsed all received bytes, so a short body is complete.
    process.nextTick(() => {
      if (isEmpty(request)) resolve(new Uint8Array());
      else request.on('readable', read).on('end', end).on('error', gone).on('close', gone);
    });
  });
}

/** An empty body must not be read: the `end` event would come before the handler listens for it. */
function isEmpty(request: IncomingMessage): boolean {
  return request.readableLength === 0 && hasArrived(request);
}

/** In HTTP/2, `complete` is also true after the client aborted. */
function hasArrived(request: IncomingMessage): boolean {
  const { stream } = request as MaybeHttp2;
  return stream ? stream.readableEnded && !stream.closed : request.complete;
}

function headersOf(response: ServerResponse, head: readonly unknown[] | undefined): ResponseHeaders {
  const headers: Record<string, string | string[]> = {};
  const put = (name: string, value: OutgoingHttpHeader | undefined) => {
    if (value !== undefined) headers[name.toLowerCase()] = typeof value === 'number' ? String(value) : value;
  };
  for (const [name, value] of Object.entries(response.getHeaders())) put(name, value);
  const last = head?.at(-1);
  if (Array.isArray(last)) for (let at = 0; at + 1 < last.length; at += 2) put(last[at], last[at + 1]);
  else if (typeof last === 'object') for (const [name, value] of Object.entries(last ?? {})) put(name, value);
  return headers;
}

function describesBody(name: string): boolean {
  return (
    name.startsWith('content-') || name === 'transfer-encoding' || name === 'etag' || name === 'location'
  );
}

function joined(chunks: readonly Chunk[]): Chunk {
  if (chunks.every((each) => typeof each === 'string')) return chunks.join('');
  return Buffer.concat(chunks.map((each) => (typeof each === 'string' ? Buffer.from(each) : each)));
}
