import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { PlainResponse } from '@holdfast/server';
import { sendResponse } from '@holdfast/server/node';
import { later } from 'holdfast';
import type { Dispatcher } from 'undici';
import type { HeaderChanges } from '../file/gateway-config.ts';
import { isResponseDropped } from './header-kinds.ts';
import type { ResponseHeaders } from './upstream-attempt.ts';

type Controller = Dispatcher.DispatchController;

/** Copying a longer body costs more than a second buffer in the same write. */
const textMax = 4096;

/** Response heads whose body has not begun, to be sent at the end of this turn of the event loop. */
let unflushed: ClientResponse[] = [];

function flushHeads(): void {
  const all = unflushed;
  unflushed = [];
  for (const each of all) each.flush();
}

/** The way back to the client: writes the head and the body of a response, with back-pressure. */
export class ClientResponse {
  declare readonly response: ServerResponse;
  declare private readonly isHttp2: boolean;
  /** A protection sees the whole response before the client: the head is not sent ahead. */
  declare private readonly isReviewed: boolean;
  /** The response is recorded, even if the client has gone. */
  declare private readonly isRecorded: boolean;
  /** Bytes of the body that are missing, if the length is known; −1: unknown. */
  declare private lengthLeft: number;
  declare private hasWritten: boolean;
  declare private hasEnded: boolean;
  declare bytes: number;

  constructor(response: ServerResponse, isHttp2: boolean, isReviewed: boolean, isRecorded: boolean) {
    this.response = response;
    this.isHttp2 = isHttp2;
    this.isReviewed = isReviewed;
    this.isRecorded = isRecorded;
    // What is written for the record after the client has gone is no news.
    if (isRecorded) response.on('error', () => {});
    this.lengthLeft = -1;
    this.hasWritten = false;
    this.hasEnded = false;
    this.bytes = 0;
  }

  /** Whether there is nobody to write for. */
  get isGone(): boolean {
    return this.response.destroyed && !this.isRecorded;
  }

  /** Whether nothing can be changed any more about the status. */
  get hasBegun(): boolean {
    return this.response.headersSent || this.hasEnded;
  }

  /**
   * Writes the head. `own` are headers of the gateway, names and values in turn. `isBodiless`: the response to a HEAD
   * request, which may have the length of a body that does not follow.
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
    // The body usually comes in the same packet. If not, the client gets the head at the end of this turn.
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
    // The last chunk ends the response. As a text it goes to the socket together with the head, in one write.
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
    // With a length there is no place for trailers in HTTP/1.1.
    if (this.lengthLeft < 0 || this.isHttp2) {
      for (const name in trailers) {
        if (isResponseDropped(name) || forbiddenTrailers.has(name)) continue;
        response.addTrailers({ [name]: trailers[name] as string });
      }
    }
    response.end();
    this.closeStream();
  }

  /** An HTTP/2 stream stays open until the client has sent its whole body, which may never happen. */
  private closeStream(): void {
    if (!this.isHttp2) return;
    const { stream, req } = this.response as unknown as Http2Response;
    if (!stream.endAfterHeaders && !req.complete) stream.close(0);
  }

  /** Sends a response of the gateway itself. */
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

  /** Ends a response whose body broke off: the client must not take it for the whole. */
  breakOff(): void {
    this.hasEnded = true;
    this.response.destroy();
  }
}

interface Http2Response {
  readonly req: { readonly complete: boolean };
  readonly stream: { readonly endAfterHeaders: boolean; close(code: number): void };
}

/** Trailers that would change how the message is framed or routed. */
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

/** HTTP/2 responses take an object: a list would keep only the last of several lines. */
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
