import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { PlainResponse } from '@holdfast/server';
import { sendResponse } from '@holdfast/server/node';
import { later } from 'holdfast';
import type { Dispatcher } from 'undici';
import type { HeaderChanges } from '../file/gateway-config.ts';
import { isResponseDropped } from './header-kinds.ts';
import type { ResponseHeaders } from './upstream-attempt.ts';

type Controller = Dispatcher.DispatchController;

/** The last chunk of a body is converted to a string if it has at most this many bytes; see `write`. */
const textMax = 4096;

/** Responses whose status and headers were written, but no body yet. `flushHeads` sends their headers. */
let unflushed: ClientResponse[] = [];

function flushHeads(): void {
  const all = unflushed;
  unflushed = [];
  for (const each of all) each.flush();
}

/** Writes the status, headers and body of a response to the client, with back-pressure. */
export class ClientResponse {
  declare readonly response: ServerResponse;
  declare private readonly isHttp2: boolean;
  /**
   * True: a protection (such as `idempotency`) inspects the whole response before it is sent. So the headers
   * must not be sent early.
   */
  declare private readonly isReviewed: boolean;
  /**
   * True: the response is stored under an idempotency key. So it is read to its end even if the client
   * disconnects.
   */
  declare private readonly isRecorded: boolean;
  /** Bytes of the body that are not written yet; −1 if the response has no Content-Length. */
  declare private lengthLeft: number;
  declare private hasWritten: boolean;
  declare private hasEnded: boolean;
  declare bytes: number;

  constructor(response: ServerResponse, isHttp2: boolean, isReviewed: boolean, isRecorded: boolean) {
    this.response = response;
    this.isHttp2 = isHttp2;
    this.isReviewed = isReviewed;
    this.isRecorded = isRecorded;
    // A recorded response is written even after the client has disconnected. Ignore the errors that this
    // causes.
    if (isRecorded) response.on('error', () => {});
    this.lengthLeft = -1;
    this.hasWritten = false;
    this.hasEnded = false;
    this.bytes = 0;
  }

  /** Whether nothing needs to be written: the client has disconnected and the response is not recorded. */
  get isGone(): boolean {
    return this.response.destroyed && !this.isRecorded;
  }

  /** Whether it is too late to send another status. */
  get hasBegun(): boolean {
    return this.response.headersSent || this.hasEnded;
  }

  /**
   * Writes the status and headers. `own` are the gateway's headers as a flat list: name, value, name, value.
   * `isBodiless` is true for a HEAD request: its response may have a Content-Length, but no body follows.
   */
  writeHead(
    status: number,
    headers: ResponseHeaders,
    own: readonly string[],
    changes: HeaderChanges,
    isBodiless: boolean,
  ): void {
    const length = headers['content-length'];
    if (typeof length === 'string') this.lengthLeft = Number(length);
    const hidden = headers.connection === undefined ? undefined : listedIn(headers.connection);
    if (this.isHttp2) this.response.writeHead(status, toObject(headers, own, changes, hidden));
    else this.response.writeHead(status, toList(headers, own, changes, hidden) as never);
    if (isBodiless || this.lengthLeft === 0 || this.isReviewed) return;
    // The body usually arrives in the same packet, and is then sent together with the headers. If it does
    // not, `flushHeads` sends the headers alone.
    if (unflushed.push(this) === 1) later(flushHeads);
  }

  flush(): void {
    if (!this.hasWritten && !this.hasEnded && !this.response.destroyed) this.response.flushHeaders();
  }

  write(chunk: Buffer, controller: Controller): void {
    const { response } = this;
    if (this.hasEnded || this.isGone) return;
    this.hasWritten = true;
    this.bytes += chunk.length;
    // The last chunk ends the response. Node joins a string with the headers and sends both as one piece,
    // which is faster than two buffers. For a long chunk, the conversion to a string would cost more than
    // that saves.
    if (this.lengthLeft === chunk.length) {
      this.hasEnded = true;
      if (chunk.length <= textMax) response.end(chunk.toString('latin1'), 'latin1');
      else response.end(chunk);
      this.closeStream();
      return;
    }
    if (this.lengthLeft > 0) this.lengthLeft -= chunk.length;
    if (!response.write(chunk)) {
      controller.pause();
      response.once('drain', () => controller.resume());
    }
  }

  end(trailers: ResponseHeaders): void {
    const { response } = this;
    if (this.hasEnded || this.isGone) return;
    this.hasEnded = true;
    // In HTTP/1.1, a response with a Content-Length cannot have trailers.
    if (this.lengthLeft < 0 || this.isHttp2) {
      for (const name in trailers) {
        if (isResponseDropped(name) || forbiddenTrailers.has(name)) continue;
        response.addTrailers({ [name]: trailers[name] as string });
      }
    }
    response.end();
    this.closeStream();
  }

  /**
   * Closes an HTTP/2 stream whose client has not sent its whole body. Otherwise, it could stay open forever.
   */
  private closeStream(): void {
    if (!this.isHttp2) return;
    const { stream, req } = this.response as unknown as Http2Response;
    if (!stream.endAfterHeaders && !req.complete) stream.close(0);
  }

  /** Sends a response that the gateway made itself, such as an error. */
  send(response: PlainResponse, own: readonly string[]): void {
    if (this.hasBegun || this.isGone) return;
    this.hasEnded = true;
    const headers: Record<string, string | string[]> = { ...response.headers };
    for (let index = 0; index < own.length; index += 2) headers[own[index]!] = own[index + 1]!;
    if (this.isHttp2) delete headers.connection;
    this.bytes = response.body?.length ?? 0;
    sendResponse(this.response, { ...response, headers });
    this.closeStream();
  }

  /** Destroys an incomplete response, so that the client does not mistake it for a complete one. */
  breakOff(): void {
    this.hasEnded = true;
    this.response.destroy();
  }
}

interface Http2Response {
  readonly req: { readonly complete: boolean };
  readonly stream: { readonly endAfterHeaders: boolean; close(code: number): void };
}

/** Names that are not allowed as trailers: they would change how the message is parsed or routed. */
const forbiddenTrailers = new Set([
  'content-length',
  'content-encoding',
  'content-type',
  'host',
  'set-cookie',
]);

function toList(
  headers: ResponseHeaders,
  own: readonly string[],
  { set, remove }: HeaderChanges,
  hidden: ReadonlySet<string> | undefined,
): string[] {
  const list: string[] = [];
  for (const name in headers) {
    if (isResponseDropped(name) || name in set || remove.includes(name) || hidden?.has(name)) continue;
    const value = headers[name];
    if (typeof value === 'string') list.push(name, value);
    else if (value) for (const each of value) list.push(name, each);
  }
  for (const name in set) list.push(name, set[name]!);
  for (let index = 0; index < own.length; index++) list.push(own[index]!);
  return list;
}

/**
 * Headers for an HTTP/2 response, as an object. From a flat list, Node would send only the last of several
 * headers with the same name.
 */
function toObject(
  headers: ResponseHeaders,
  own: readonly string[],
  changes: HeaderChanges,
  hidden: ReadonlySet<string> | undefined,
): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = {};
  for (const name in headers) {
    if (isResponseDropped(name) || changes.remove.includes(name) || hidden?.has(name)) continue;
    const value = headers[name];
    if (value !== undefined) all[name] = value;
  }
  for (const name in changes.set) all[name] = changes.set[name]!;
  for (let index = 0; index < own.length; index += 2)
    if (own[index] !== 'connection') all[own[index]!] = own[index + 1]!;
  return all;
}

function listedIn(connection: string | string[]): ReadonlySet<string> | undefined {
  const text = String(connection).toLowerCase();
  if (text === 'keep-alive' || text === 'close') return undefined;
  return new Set(text.split(',').map((each) => each.trim()));
}
