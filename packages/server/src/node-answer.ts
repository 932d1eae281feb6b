import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Answer, AnswerHeaders, HandlerAnswer } from './answer.ts';

type Chunk = string | Uint8Array;
type WriteHead = (status: number, ...rest: unknown[]) => ServerResponse;
type Done = (error?: Error | null) => void;

export function sendAnswer(response: ServerResponse, { status, headers, body }: Answer): void {
  const all: OutgoingHttpHeaders = { ...(headers as OutgoingHttpHeaders) };
  // A 204 has none, and must not say how long it is.
  if (body !== null && status !== 204) all['content-length'] = Buffer.byteLength(body);
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
 * to forget what was collected.
 */
export function holdBack(
  response: ServerResponse,
  bytesMax: number,
  review: (answer: HandlerAnswer) => Promise<Answer | undefined>,
): () => void {
  const writeHead = response.writeHead.bind(response) as WriteHead;
  const write = response.write.bind(response);
  const end = response.end.bind(response);
  const flushHeaders = response.flushHeaders.bind(response);
  let head: [status: number, ...rest: unknown[]] | undefined;
  const chunks: Chunk[] = [];
  let length = 0;
  let ended = false;
  let isShown = false;
  const done: Done[] = [];

  function letGo(): void {
    Object.assign(response, { writeHead, write, end, flushHeaders });
  }

  function show(whole: boolean): void {
    if (isShown) return;
    isShown = true;
    const body = !whole ? undefined : chunks.length === 1 ? chunks[0] : joined(chunks);
    const answer = { status: head?.[0] ?? response.statusCode, headers: headersOf(response, head), body };
    review(answer).then(send, (error: unknown) => response.destroy(error as Error));
  }

  function send(instead: Answer | undefined): void {
    letGo();
    if (instead) sendInstead(response, instead);
    else {
      if (head) writeHead(...head);
      // Together, so that a short answer goes out in one piece and has a length.
      if (ended && chunks.length <= 1) end(chunks[0] as string);
      else {
        for (const chunk of chunks) write(chunk);
        if (ended) end();
        else response.emit('drain');
      }
    }
    for (const each of done) each();
  }

  function collect(chunk: unknown, encoding: unknown, callback: unknown): void {
    const text = typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined;
    const listener = [chunk, encoding, callback].find((each) => typeof each === 'function') as
      | Done
      | undefined;
    if (listener) done.push(listener);
    if (chunk === undefined || chunk === null || typeof chunk === 'function') return;
    const plain = typeof chunk === 'string' && text !== undefined && text !== 'utf8' && text !== 'utf-8';
    const piece = plain ? Buffer.from(chunk as string, text) : (chunk as Chunk);
    length += Buffer.byteLength(piece);
    chunks.push(piece);
  }

  Object.assign(response, {
    writeHead(...given: [number, ...unknown[]]) {
      head ??= given;
      return response;
    },
    flushHeaders() {
      show(false);
    },
    write(chunk: unknown, encoding?: unknown, callback?: unknown) {
      collect(chunk, encoding, callback);
      const type = headersOf(response, head)['content-type'];
      if (length > bytesMax || String(type).startsWith('text/event-stream')) show(false);
      return !isShown;
    },
    end(chunk?: unknown, encoding?: unknown, callback?: unknown) {
      if (ended) return response;
      collect(chunk, encoding, callback);
      ended = true;
      show(length <= bytesMax);
      return response;
    },
  });
  return letGo;
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
    write: () => true,
    end: silent,
  });
}

/** Reads the whole body, and puts it back for whoever reads next. `undefined`: it is longer than that. */
export function readWhole(request: IncomingMessage, bytesMax: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  return new Promise((resolve, reject) => {
    const leave = () =>
      request.off('readable', read).off('end', finish).off('error', fail).off('close', gone);
    const fail = (error: Error) => {
      leave();
      reject(error);
    };
    const gone = () => fail(new Error('The client left before it had sent the whole request.'));
    const finish = () => {
      leave();
      const body = length > bytesMax ? undefined : Buffer.concat(chunks, length);
      // In the same tick as the last read: when `end` has been emitted, nothing can be put back.
      if (body && length > 0) request.unshift(body);
      resolve(body);
    };
    const read = () => {
      for (let chunk: Buffer | null = request.read(); chunk !== null; chunk = request.read()) {
        chunks.push(chunk);
        length += chunk.length;
      }
      if (request.complete || length > bytesMax) finish();
    };
    request.on('readable', read).on('end', finish).on('error', fail).on('close', gone);
  });
}

function headersOf(response: ServerResponse, head: readonly unknown[] | undefined): AnswerHeaders {
  const headers: Record<string, string | string[]> = {};
  const put = (name: string, value: OutgoingHttpHeader | undefined) => {
    if (value !== undefined) headers[name.toLowerCase()] = typeof value === 'number' ? String(value) : value;
  };
  for (const [name, value] of Object.entries(response.getHeaders())) put(name, value);
  const given = head?.at(-1);
  if (Array.isArray(given)) for (let at = 0; at + 1 < given.length; at += 2) put(given[at], given[at + 1]);
  else if (typeof given === 'object') for (const [name, value] of Object.entries(given!)) put(name, value);
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
