import { assembly, type Program } from '@holdfast/assembly';

interface Shop {
  readonly charge: (order: string, key: string) => Promise<void>;
  readonly reserve: (order: string, key: string) => Promise<void>;
  readonly ship: (order: string, key: string) => Promise<void>;
}

/** A step that is done is on record and never runs again. Only the one that failed is tried again, under its own key. */
export function placeOrder(shop: Shop): Program<string, void> {
  return assembly('place-order', { version: 1 }, async (step, order: string) => {
    await step.run('charge', ({ key }) => shop.charge(order, key));
    await step.run('reserve', ({ key }) => shop.reserve(order, key));
    await step.run('ship', ({ key }) => shop.ship(order, key));
  });
}
