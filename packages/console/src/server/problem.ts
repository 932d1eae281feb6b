/** Each kind of error response with its HTTP status and title. */
const problems = {
  'bad-question': [400, 'The question is not understood.'],
  'sign-in': [401, 'Sign in first.'],
  role: [403, 'This needs the right to operate.'],
  origin: [403, 'This request comes from another page.'],
  unknown: [404, 'There is no such thing here.'],
  method: [405, 'This path has other methods.'],
  busy: [409, 'Something else is at work on it.'],
  changed: [412, 'It has changed since you saw it.'],
  'too-large': [413, 'The request is too large.'],
  'not-json': [415, 'The body must be JSON.'],
  host: [421, 'This host name is not served here.'],
  'empty-filter': [422, 'The filter would match everything.'],
  'no-reason': [422, 'A reason is needed.'],
  'does-not-fit': [422, 'This cannot be done with it.'],
  'slow-down': [429, 'Too many requests.'],
  failed: [500, 'The console has failed.'],
  'feature-missing': [501, 'This store cannot do that.'],
  'store-away': [503, 'The store does not answer.'],
} as const satisfies Record<string, readonly [status: number, title: string]>;

export type ProblemKind = keyof typeof problems;

export interface ProblemMembers {
  /** The code of a Holdfast error, such as `HOLDFAST_OPTIONS`. */
  readonly code?: string | undefined;
  readonly issues?: readonly { readonly path: string; readonly message: string }[] | undefined;
  readonly [member: string]: unknown;
}

/** An error response of the API. `detail` is one sentence that contains the wrong value. */
export class Problem extends Error {
  readonly kind: ProblemKind;
  readonly members: ProblemMembers;
  readonly retryAfterS: number | undefined;

  constructor(kind: ProblemKind, detail: string, members: ProblemMembers = {}, retryAfterS?: number) {
    super(detail);
    this.name = 'Problem';
    this.kind = kind;
    this.members = members;
    this.retryAfterS = retryAfterS;
  }

  get status(): number {
    return problems[this.kind][0];
  }

  /** The format is "problem details" (RFC 9457). */
  toResponse(): Response {
    const [status, title] = problems[this.kind];
    const body = { type: `/problems/${this.kind}`, title, status, detail: this.message, ...this.members };
    return new Response(JSON.stringify(body), {
      status,
      headers: {
        'content-type': 'application/problem+json',
        ...(this.retryAfterS !== undefined && { 'retry-after': String(this.retryAfterS) }),
      },
    });
  }
}

export function problemKinds(): {
  readonly kind: ProblemKind;
  readonly status: number;
  readonly title: string;
}[] {
  return Object.entries(problems).map(([kind, [status, title]]) => ({
    kind: kind as ProblemKind,
    status,
    title,
  }));
}
