/** Headers of a response, names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[]>>;

/** A whole response, independent of any framework. */
export interface PlainResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string | Uint8Array | null;
}

/** The response of a handler, before a byte of it was sent. */
export interface HandlerResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** `undefined`: it is a stream, or longer than the reviewer's `bodyMax`. */
  readonly body: string | Uint8Array | undefined;
}

/** The value of a header; several lines are joined with a comma. */
export function headerOf(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' || value === undefined ? value : value.join(', ');
}

/** For servers that use `Request` and `Response`. */
export function toResponse({ status, headers, body }: PlainResponse): Response {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const each of typeof value === 'string' ? [value] : value) all.append(name, each);
  }
  // These statuses have no body: `Response` throws where it gets one.
  const bodiless = status === 204 || status === 205 || status === 304;
  return new Response(bodiless ? null : (body as BodyInit | null), { status, headers: all });
}
