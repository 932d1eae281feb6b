import type { AnswerOf, Question, RouteName } from '../src/api/routes.ts';

/** An error answer of the API: one sentence for people, and in `issues` the errors of single fields. */
export class ApiError extends Error {
  readonly kind: string;
  readonly status: number;
  readonly issues: readonly { readonly path: string; readonly message: string }[];
  readonly members: Readonly<Record<string, unknown>>;

  constructor(status: number, problem: Readonly<Record<string, unknown>>) {
    super(String(problem.detail ?? `The server answered ${status}.`));
    this.kind = String(problem.type ?? '').replace('/problems/', '');
    this.status = status;
    this.issues = (problem.issues as ApiError['issues']) ?? [];
    this.members = problem;
  }
}

type Asked<Name extends RouteName> = Partial<Question<Name>> & {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Called when the session has ended, so that the page can show the sign-in form. */
export const onSignedOut: { call: () => void } = { call: () => {} };

/**
 * Sends a request to the API. A request that changes something gets an idempotency key, so that a double
 * click is executed once. To choose the key, pass `headers`.
 */
export async function ask<Name extends RouteName>(
  name: Name,
  { path, query, body, signal, headers }: Asked<Name> = {},
): Promise<AnswerOf<Name>> {
  const [method = 'GET', pattern = ''] = name.split(' ');
  const response = await fetch(urlOf(pattern, path, query), {
    method,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(method !== 'GET' && { 'idempotency-key': crypto.randomUUID() }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
  if (response.ok) return (await response.json()) as AnswerOf<Name>;
  const problem = await response.json().catch(() => ({}));
  const error = new ApiError(response.status, problem as Record<string, unknown>);
  if (error.kind === 'sign-in') onSignedOut.call();
  throw error;
}

function urlOf(pattern: string, path: object = {}, query: object = {}): string {
  const values = path as Record<string, string>;
  const place = pattern.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const each of [value].flat()) if (each !== undefined) words.append(name, String(each));
  return `/api/v1${place}${words.size > 0 ? `?${words}` : ''}`;
}
