import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type ServerResponse,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';
import { ClientGoneError } from '../exchange.ts';
import type { Answer, AnswerHeaders, HandlerAnswer } from '../response.ts';
import type { OnStream } from './response-end.ts';

type Chunk = string | Uint8Array;
type WriteHead = (status: number, ...rest: unknown[]) => ServerResponse;

export function sendAnswer(response: ServerResponse, { status, headers, body }: Answer): void {
  const all: OutgoingHttpHeaders = { ...(headers as OutgoingHttpHeaders) };
  // A 204 has none, and must not say how long it is. To a HEAD, what was said is how long it would be.
  const isSaid = response.req.method === 'HEAD' && all['content-length'] !== undefined;
  if (body !== null && status !== 204 && !isSaid) all['content-length'] = Buffer.byteLength(body);
  response.writeHead(status, all);
  response.end(body ?? undefined);
}

/** The same where a handler may have said something about an answer of its own before. */
export function sendInstead(response: ServerResponse, answer: Answer): void {
  for (const name of response.getHeaderNames()) if (isOfBody(name)) response.removeHeader(name);
  sendAnswer(response, answer);
}

/**
 * Keeps an answer back until it has been seen: `writeHead`, `write` and `end` of one response collect what a handler says.
 * An answer that is a stream, or longer than `bytesMax`, is shown without its body and passed on from there. Gives the way
 * to forget what was collected, where that is still possible.
 */
export function holdBack(
  response: ServerResponse,
  bytesMax: number,
  review: (answer: HandlerAnswer) => Promise<Answer | undefined>,
): () => void {
  const free = {
    writeHead: response.writeHead.bind(response) as WriteHead,
    write: response.write.bind(response) as (...given: unknown[]) => boolean,
    end: response.end.bind(response) as (...given: unknown[]) => ServerResponse,
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
  let isShown = false;
  let state: 'held' | 'free' | 'replaced' = 'held';
  /** What callbacks came with that wait until it is sent. */
  const unheard: unknown[][] = [];

  const held = {
    writeHead(...given: [number, ...unknown[]]) {
      if (state !== 'held') return state === 'free' ? free.writeHead(...given) : response;
      if (head) return response;
      // Now, while the handler can still hear of it.
      for (const [name, value] of Object.entries(headersOf(response, given))) {
        validateHeaderName(name);
        validateHeaderValue(name, value as string);
      }
      head = given;
      return response;
    },
    flushHeaders() {
      if (state === 'free') free.flushHeaders();
      else if (state === 'held') show(false);
    },
    write(...given: unknown[]) {
      if (state === 'free') return free.write(...given);
      // It is taken. A handler that waits for that before it goes on would never come to the end that is waited for here.
      const goesNowhere = state === 'replaced' || ended;
      if (goesNowhere || !isShown) callBack(given);
      else unheard.push(given);
      if (goesNowhere) return true;
      collect(given);
      const type = headersOf(response, head)['content-type'];
      if (length > bytesMax || String(type).startsWith('text/event-stream')) show(false);
      return !isShown;
    },
    end(...given: unknown[]) {
      if (state === 'free') return free.end(...given);
      if (state === 'replaced') callBack(given);
      else if (!ended) {
        unheard.push(given);
        collect(given);
        ended = true;
        show(length <= bytesMax);
      }
      return response;
    },
    // What was shown is what is sent, whatever an error handler says after it.
    setHeader: (...given: Parameters<typeof free.setHeader>) =>
      state === 'held' && isShown ? response : free.setHeader(...given),
    appendHeader: (...given: Parameters<typeof free.appendHeader>) =>
      state === 'held' && isShown ? response : free.appendHeader(...given),
    removeHeader(name: string) {
      if (state !== 'held' || !isShown) free.removeHeader(name);
    },
    destroy(error?: Error) {
      // It breaks off: nobody will have the rest, and nothing more will be said.
      if (state === 'held' && !isShown) {
        isShown = true;
        // Where that cannot be kept, the key is as if its holder had died.
        review({ ...said(), body: undefined }).catch(() => {});
      }
      return free.destroy(error);
    },
  };

  /** A middleware behind this may have put its own in their places, which call these: they stay, and these pass on. */
  function letGo(): void {
    state = 'free';
    const now = response as unknown as Record<string, unknown>;
    for (const name of Object.keys(held) as (keyof typeof held)[]) {
      if (now[name] === held[name]) now[name] = free[name];
    }
    Reflect.deleteProperty(response, 'headersSent');
  }

  function forget(): void {
    if (state !== 'held') return;
    state = 'replaced';
    Object.assign(response, free);
    Reflect.deleteProperty(response, 'headersSent');
  }

  function said() {
    return { status: head?.[0] ?? response.statusCode, headers: headersOf(response, head) };
  }

  function show(whole: boolean): void {
    if (isShown) return;
    isShown = true;
    const body = !whole ? undefined : chunks.length === 1 ? chunks[0] : joined(chunks);
    const answer = { ...said(), body };
    // HTTP/2 has no message, and warns whoever asks for one.
    const message = (response as OnStream).stream ? {} : { statusMessage: response.statusMessage };
    review(answer)
      .then((instead) => {
        if (instead) replace(instead);
        else {
          Object.assign(response, { statusCode: answer.status, ...message });
          send();
        }
        for (const each of unheard) callBack(each);
      })
      .catch((error: unknown) => free.destroy(error as Error));
  }

  function replace(instead: Answer): void {
    forget();
    sendInstead(response, instead);
    mute(response);
  }

  function send(): void {
    letGo();
    if (head) free.writeHead(...head);
    // Together, so that a short answer goes out in one piece and has a length.
    if (ended && chunks.length <= 1) free.end(chunks[0]);
    else {
      for (const chunk of chunks) free.write(chunk);
      if (ended) free.end();
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

  Object.assign(response, held);
  // An error handler must not add its own answer to half of another. A whole one is safe from it.
  Object.defineProperty(response, 'headersSent', {
    configurable: true,
    get: () => !ended && (head !== undefined || chunks.length > 0),
  });
  return forget;
}

/** Whatever the handler still says goes nowhere: the client has had another answer. */
export function mute(response: ServerResponse): void {
  const silent = () => response;
  Object.assign(response, {
    writeHead: silent,
    setHeader: silent,
    appendHeader: silent,
    removeHeader: () => {},
    flushHeaders: () => {},
    write(...given: unknown[]) {
      callBack(given);
      return true;
    },
    end(...given: unknown[]) {
      callBack(given);
      return response;
    },
  });
}

/** Calls the callback that `write` or `end` was given, if there is one. */
function callBack(given: readonly unknown[]): void {
  const callback = given.find((each) => typeof each === 'function') as (() => void) | undefined;
  if (callback) process.nextTick(callback);
}

/** Reads the whole body, and puts it back for whoever reads next. `undefined`: it is longer than that. */
export function readWhole(request: IncomingMessage, bytesMax: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  return new Promise((resolve, reject) => {
    const leave = () => request.off('readable', read).off('end', end).off('error', gone).off('close', gone);
    const gone = () => {
      leave();
      reject(new ClientGoneError());
    };
    const finish = () => {
      leave();
      const body = length > bytesMax ? undefined : Buffer.concat(chunks, length);
      // In the same tick as the last read: when `end` has been emitted, nothing can be put back.
      if (body && length > 0) request.unshift(body);
      resolve(body);
    };
    const end = () => (hasCome(request) ? finish() : gone());
    const read = () => {
      if (length === 0 && isEmpty(request)) return finish();
      for (let chunk: Buffer | null = request.read(); chunk !== null; chunk = request.read()) {
        chunks.push(chunk);
        length += chunk.length;
      }
      if (hasCome(request) || length > bytesMax) finish();
    };
    // When the parser is through with what came together.
    process.nextTick(() => {
      if (isEmpty(request)) resolve(new Uint8Array());
      else request.on('readable', read).on('end', end).on('error', gone).on('close', gone);
    });
  });
}

/** Such a body is not read: its end would be over before the handler listens for it. */
function isEmpty(request: IncomingMessage): boolean {
  return request.readableLength === 0 && hasCome(request);
}

/** To the last byte, read or not. Of HTTP/2, `complete` is also said of what a client broke off, and so is its end. */
function hasCome(request: IncomingMessage): boolean {
  const { stream } = request as OnStream;
  return stream ? stream.readableEnded && !stream.closed : request.complete;
}

function headersOf(response: ServerResponse, head: readonly unknown[] | undefined): AnswerHeaders {
  const headers: Record<string, string | string[]> = {};
  const put = (name: string, value: OutgoingHttpHeader | undefined) => {
    if (value !== undefined) headers[name.toLowerCase()] = typeof value === 'number' ? String(value) : value;
  };
  for (const [name, value] of Object.entries(response.getHeaders())) put(name, value);
  const given = head?.at(-1);
  if (Array.isArray(given)) for (let at = 0; at + 1 < given.length; at += 2) put(given[at], given[at + 1]);
  else if (typeof given === 'object')
    for (const [name, value] of Object.entries(given ?? {})) put(name, value);
  return headers;
}

function isOfBody(name: string): boolean {
  return (
    name.startsWith('content-') || name === 'transfer-encoding' || name === 'etag' || name === 'location'
  );
}

function joined(chunks: readonly Chunk[]): Chunk {
  if (chunks.every((each) => typeof each === 'string')) return chunks.join('');
  return Buffer.concat(chunks.map((each) => (typeof each === 'string' ? Buffer.from(each) : each)));
}
