import { policy } from 'holdfast';

/** Switched to `observe` to try it out, a year ago. */
export const forgotten = policy({ name: 'billing', mode: 'observe' });

export function invoice(id: string): Promise<Response> {
  return forgotten.run(({ signal }) => fetch(`https://billing.test/${id}`, { signal }));
}
