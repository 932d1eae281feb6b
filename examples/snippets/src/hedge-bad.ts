import { policy } from 'holdfast';

/** Whenever a payment takes longer than 100 ms, it is made once more. */
export const twice = policy({ hedge: { after: '100ms', extraLoad: 0.5 } });

export function pay(order: string): Promise<Response> {
  return twice.run(({ signal }) =>
    fetch('https://bank.test/payments', { method: 'POST', body: order, signal }),
  );
}
