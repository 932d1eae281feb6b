import { assembly, type Program } from '@holdfast/assembly';
import type { HoldfastFetch } from '@holdfast/http';
import { permanent } from 'holdfast';
import type { PlacedOrder } from './charge-orders.ts';

export interface Fulfilled {
  readonly order: string;
  readonly parcel: string;
}

/** Reserve, ship, notify: each with a service that fails now and then. What is sold out waits for a person. */
export function fulfilOrder(send: HoldfastFetch, url: string): Program<PlacedOrder, Fulfilled> {
  async function ask(act: string, order: PlacedOrder, signal: AbortSignal): Promise<string> {
    const response = await send(`${url}/${act}`, { method: 'POST', body: JSON.stringify(order), signal });
    const body = (await response.json()) as { number: string; error?: string };
    if (response.ok) return body.number;
    const error = Object.assign(new Error(`${act}: ${body.error}`), { status: response.status });
    throw response.status === 409 ? permanent(error) : error;
  }
  return assembly<PlacedOrder, Fulfilled>(
    'fulfil-order',
    { version: 1, plan: ['reserve', 'ship', 'notify'], patience: '1h' },
    async (step, order) => {
      const policy = { attempts: 10, backoff: { base: '100ms', cap: '5s' } } as const;
      await step.run('reserve', ({ signal }) => ask('stock/reserve', order, signal), {
        policy,
        undo: (_, { signal }) => ask('stock/release', order, signal),
      });
      const parcel = await step.run('ship', ({ signal }) => ask('shipping/ship', order, signal), { policy });
      await step.sleep('on its way', '3s');
      await step.run('notify', ({ signal }) => ask('notification/send', order, signal), { policy });
      return { order: order.order, parcel };
    },
  );
}
