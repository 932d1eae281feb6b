/** Headers by their lower-case names, as Fastify's `reply.headers()` and Node's `writeHead` accept them. */
export type ResponseHeaders = Readonly<Record<string, string | string[]>>;

/** A whole response as plain data. */
export interface PlainResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string | Uint8Array | null;
}

/** The response of a handler, before any byte of it is sent. */
export interface HandlerResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** `undefined`: the body is a stream, or too long for the reviewer. */
  readonly body: string | Uint8Array | undefined;
}

export function headerOf(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' || value === undefined ? value : value.join(', ');
}

/** Converts a plain response to a `Response`, for servers that use `Request` and `Response`. */
export function toResponse({ status, headers, body }: PlainResponse): Response {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const each of typeof value === 'string' ? [value] : value) all.append(name, each);
  }
  // `Response` throws if a response with one of these statuses has a body.
  const bodiless = status === 204 || status === 205 || status === 304;
  return new Response(bodiless ? null : (body as BodyInit | null), { status, headers: all });
}
