/** Headers of an answer, names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[]>>;

/** A whole answer, of no framework in particular. */
export interface Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: string | Uint8Array | null;
}

/** What a handler is about to answer, before a byte of it has left. */
export interface HandlerAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** `undefined`: it is a stream, or longer than was asked for. */
  readonly body: string | Uint8Array | undefined;
}

/** One value of a header; several lines of it are joined. */
export function headerOf(headers: AnswerHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' || value === undefined ? value : value.join(', ');
}

/** For servers that speak `Request` and `Response`. */
export function toResponse({ status, headers, body }: Answer): Response {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const each of typeof value === 'string' ? [value] : value) all.append(name, each);
  }
  // These have no body, and `Response` refuses to be given one.
  const bodiless = status === 204 || status === 205 || status === 304;
  return new Response(bodiless ? null : (body as BodyInit | null), { status, headers: all });
}
