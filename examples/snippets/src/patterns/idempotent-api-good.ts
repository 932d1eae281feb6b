import type { Ledger } from '@holdfast/contracts';
import { createFetch, type Runner } from '@holdfast/http';
import { guardWeb, idempotency } from '@holdfast/server';
import type { Environment } from 'holdfast';

/** All attempts of one charge carry the same `Idempotency-Key`. */
export function pay(send: typeof fetch, order: string, policy?: Runner): Promise<Response> {
  const keyed = createFetch({ fetch: send, idempotency: 'auto', policy });
  return keyed('https://payments.test/charges', { method: 'POST', body: order });
}

/** The first request with a key is executed, and its response is recorded. The others get that response. */
export function paymentsApi(
  ledger: Ledger,
  charge: (order: string) => void,
  environment?: Environment,
): (request: Request) => Promise<Response> {
  const once = idempotency({ ledger, scope: 'public' }, environment);
  return guardWeb([once], async (request) => {
    charge(await request.text());
    return new Response('charged', { status: 201 });
  });
}
