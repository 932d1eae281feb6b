import { policy } from 'holdfast';

/** A payment that failed looks like one that was made, and nobody ever hears of it. */
export const hopeful = policy({ fallback: { to: { paid: true } } });

export function pay(order: string): Promise<{ paid: boolean }> {
  return hopeful.run(
    async ({ signal }) => {
      const response = await fetch('https://bank.test/payments', { method: 'POST', body: order, signal });
      if (!response.ok) throw Object.assign(new Error('refused'), { status: response.status });
      return { paid: true };
    },
    { idempotent: false },
  );
}
