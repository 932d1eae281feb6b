import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from 'holdfast';
import { attachExchange, Exchange, type RequestBody, tooLarge } from '../exchange.ts';
import type { HeaderNames } from '../header-names.ts';
import type { PlainResponse } from '../response.ts';
import {
  bufferBody,
  discardWrites,
  type HeldResponse,
  holdResponse,
  sendReplacement,
  sendResponse,
} from './held-response.ts';
import { isClosed, onResponseEnd } from './response-end.ts';

interface ParsedRequest {
  readonly body?: unknown;
  readonly rawBody?: unknown;
}

export class NodeExchange extends Exchange {
  declare readonly native: unknown;
  declare readonly request: IncomingMessage;
  declare readonly response: ServerResponse;
  declare private held: HeldResponse | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, clock: Clock, native: object = request) {
    super(clock);
    this.request = request;
    this.response = response;
    this.native = native;
    this.held = undefined;
    attachExchange(native, this);
  }

  get method(): string {
    return this.request.method!;
  }

  get url(): string {
    return this.request.url!;
  }

  get host(): string {
    const { host, ':authority': authority } = this.request.headers;
    return host ?? (authority as string | undefined) ?? '';
  }

  get route(): string | undefined {
    return undefined;
  }

  get peer(): string {
    return this.request.socket.remoteAddress ?? '';
  }

  get headers(): IncomingMessage['headers'] {
    return this.request.headers;
  }

  get status(): number {
    return this.response.statusCode;
  }

  get isAnswered(): boolean {
    return this.response.writableEnded;
  }

  protected get isDisconnected(): boolean {
    return isClosed(this.response);
  }

  /**
   * Searches `rawHeaders`. Reading `headers` would be slower, because Node creates that object at the first
   * read.
   */
  override mayHaveHeader(names: HeaderNames): boolean {
    const { rawHeaders } = this.request;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      if (names.has(rawHeaders[index]!)) return true;
    }
    return false;
  }

  override header(name: string): string | undefined {
    return this.request.headers[name] as string | undefined;
  }

  headerLines(name: string): readonly string[] {
    // Node joins several lines of a header with a comma. So a value without a comma was one line.
    const value = this.request.headers[name];
    if (value === undefined) return [];
    return typeof value === 'string' && !value.includes(',') ? [value] : linesOf(this.request, name);
  }

  setHeader(name: string, value: string): void {
    if (this.held) this.held.setHeader(name, value);
    else this.response.setHeader(name, value);
  }

  readBody(bytesMax: number): RequestBody | Promise<RequestBody> {
    const { request } = this;
    if (request.readableEnded) return readAlready(request as ParsedRequest);
    return bufferBody(request, bytesMax).then((body) => body ?? tooLarge);
  }

  send(response: PlainResponse): void {
    sendResponse(this.response, response);
  }

  protected answerInstead(instead: PlainResponse): void {
    const { response } = this;
    this.held?.discard();
    if (response.headersSent) return;
    sendReplacement(response, instead);
    discardWrites(response);
  }

  protected watchEnd(): void {
    onResponseEnd(this.response, (completed) => this.ended(completed));
  }

  prepare(): void {
    if (!this.hasReviewers || this.held) return;
    this.held = holdResponse(this.response, this.reviewedBodyMax, (response) => this.callReviewers(response));
  }

  refuse(response: PlainResponse, failed: (error: unknown) => void): void {
    if (this.hasReviewers && !this.held) {
      const shown = { ...response, body: response.body ?? '' };
      this.callReviewers(shown).then((instead) => this.send(instead ?? response), failed);
    } else this.send(response);
  }
}

/**
 * Returns the values of a header, one for each line. In HTTP/2 requests, Node has already joined the lines.
 */
export function linesOf({ headers, headersDistinct }: IncomingMessage, name: string): readonly string[] {
  return headersDistinct ? (headersDistinct[name] ?? []) : [headers[name] ?? []].flat();
}

function readAlready(request: ParsedRequest): RequestBody {
  const { rawBody, body } = request;
  if (typeof rawBody === 'string' || rawBody instanceof Uint8Array) return rawBody;
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  return body === undefined ? '' : JSON.stringify(body);
}
