import type { DatabaseSync } from 'node:sqlite';
import { assembly, type Program } from '@holdfast/assembly';
import type { HoldfastFetch } from '@holdfast/http';

export interface NewOrder {
  readonly order: string;
  readonly item: string;
}

export interface Placed {
  readonly order: string;
  readonly receipt: string;
  readonly parcel: string;
}

/** Makes the table in which a placed order is kept. */
export function createPlaced(database: DatabaseSync): void {
  database.exec('CREATE TABLE IF NOT EXISTS placed (id TEXT, receipt TEXT, parcel TEXT)');
}

/**
 * Charge, reserve, ship, notify: each with a service that fails. What was done is not done again, and what cannot be finished is
 * undone: who is charged for something that is sold out gets the money back.
 */
export function placeOrderProgram(send: HoldfastFetch, url: string): Program<NewOrder, Placed, DatabaseSync> {
  async function ask(act: string, order: NewOrder, signal: AbortSignal): Promise<string> {
    // `send` was made with `idempotency: 'derive'`: it sends a key that is made from the key of the step, in each attempt the same.
    const response = await send(`${url}/${act}`, { method: 'POST', body: JSON.stringify(order), signal });
    if (!response.ok)
      throw Object.assign(new Error(`${act} answered ${response.status}`), { status: response.status });
    return ((await response.json()) as { number: string }).number;
  }

  return assembly<NewOrder, Placed, DatabaseSync>(
    'place-order',
    { version: 1, plan: ['charge', 'reserve', 'ship', 'book', 'notify'], onFailure: 'undo' },
    async (step, order) => {
      const policy = { attempts: 20, backoff: { base: '20ms', cap: '200ms' } } as const;
      const call = (act: string) => (context: { readonly signal: AbortSignal }) =>
        ask(act, order, context.signal);
      const receipt = await step.run('charge', call('payment/charge'), {
        policy,
        undo: (_, context) => call('payment/refund')(context),
      });
      await step.run('reserve', call('stock/reserve'), {
        policy,
        undo: (_, context) => call('stock/release')(context),
      });
      const parcel = await step.run('ship', call('shipping/ship'), { policy });
      await step.transaction('book', (database) => {
        database.prepare('INSERT INTO placed VALUES (?, ?, ?)').run(order.order, receipt, parcel);
      });
      await step.run('notify', call('notification/send'), { policy });
      return { order: order.order, receipt, parcel };
    },
  );
}
