import type { Policy } from 'holdfast';

interface Shop {
  readonly charge: (order: string) => Promise<void>;
  readonly reserve: (order: string) => Promise<void>;
  readonly ship: (order: string) => Promise<void>;
}

/** When the parcel cannot be sent, all of it runs again: the card is charged once for each attempt. */
export function placeOrder(policy: Policy, shop: Shop, order: string): Promise<void> {
  return policy.run(async () => {
    await shop.charge(order);
    await shop.reserve(order);
    await shop.ship(order);
  });
}
