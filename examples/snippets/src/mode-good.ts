import { policy } from 'holdfast';

/** A tenth of the work is protected, the rest only counted: `counters.would` says what would have been done. */
export const billing = policy({ name: 'billing', mode: { enforce: 0.1 } });

export function invoice(id: string): Promise<Response> {
  return billing.run(({ signal }) => fetch(`https://billing.test/${id}`, { signal }));
}
