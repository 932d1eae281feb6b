import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from 'holdfast';
import { carry, Exchange, type RequestBody, tooLarge } from '../exchange.ts';
import type { HeaderNames } from '../header-names.ts';
import type { Answer } from '../response.ts';
import { holdBack, mute, readWhole, sendAnswer, sendInstead } from './held-response.ts';
import { isClosed, whenEnded } from './response-end.ts';

/** What is left of a request whose body somebody has read: parsed by Express, or as it was. */
interface Parsed {
  readonly body?: unknown;
  readonly rawBody?: unknown;
}

/** An exchange on `node:http`, without a conversion. */
export class NodeExchange extends Exchange {
  declare readonly native: unknown;
  declare readonly request: IncomingMessage;
  declare readonly response: ServerResponse;
  /** Lets go of an answer that is held back. */
  declare private letGo: (() => void) | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, clock: Clock, native: object = request) {
    super(clock);
    this.request = request;
    this.response = response;
    this.native = native;
    this.letGo = undefined;
    carry(native, this);
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

  /** Node makes an object of the headers when it is first asked for; most requests say nothing that is looked for here. */
  override mayHave(names: HeaderNames): boolean {
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
    // One line, as nearly always, needs no look at the others. Several are joined by a comma.
    const value = this.request.headers[name];
    if (value === undefined) return [];
    return typeof value === 'string' && !value.includes(',') ? [value] : linesOf(this.request, name);
  }

  setHeader(name: string, value: string): void {
    this.response.setHeader(name, value);
  }

  readBody(bytesMax: number): RequestBody | Promise<RequestBody> {
    const { request } = this;
    if (request.readableEnded) return readAlready(request as Parsed);
    return readWhole(request, bytesMax).then((body) => body ?? tooLarge);
  }

  send(answer: Answer): void {
    sendAnswer(this.response, answer);
  }

  protected answerInstead(answer: Answer): void {
    const { response } = this;
    this.letGo?.();
    if (response.headersSent) return;
    sendInstead(response, answer);
    mute(response);
  }

  protected watchEnd(): void {
    whenEnded(this.response, (completed) => this.ended(completed));
  }

  /** The handler is next. */
  prepare(): void {
    if (!this.isHeld || this.letGo) return;
    this.letGo = holdBack(this.response, this.heldBodyMax, (answer) => this.reviewed(answer));
  }

  /** Answers instead of the handler, once those have seen it who asked. */
  refuse(answer: Answer, failed: (error: unknown) => void): void {
    if (this.isHeld && !this.letGo) {
      const shown = { ...answer, body: answer.body ?? '' };
      this.reviewed(shown).then((instead) => this.send(instead ?? answer), failed);
    } else this.send(answer);
  }
}

/** All lines of one header. Of HTTP/2 they are only known joined. */
export function linesOf({ headers, headersDistinct }: IncomingMessage, name: string): readonly string[] {
  return headersDistinct ? (headersDistinct[name] ?? []) : [headers[name] ?? []].flat();
}

function readAlready(request: Parsed): RequestBody {
  const { rawBody, body } = request;
  if (typeof rawBody === 'string' || rawBody instanceof Uint8Array) return rawBody;
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  return body === undefined ? '' : JSON.stringify(body);
}
