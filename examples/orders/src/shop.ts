import { producer } from '@holdfast/events';
import type { SqliteEngine } from '@holdfast/sqlite';
import type { Random } from 'holdfast';
import { eventTypes } from './order.ts';
import { topic } from './order-view.ts';
import { reluctantCard } from './payment-service.ts';

export interface Shop {
  /** Publishes all events of one more order. */
  sell(): Promise<void>;
  readonly sold: number;
}

/** Sells things. Of a hundred orders two come from an old version that writes prices as text, and three cards are reluctant. */
export function openShop(engine: SqliteEngine, run: string, random: Random): Shop {
  const events = producer({ engine, topic, ordering: 'key' });
  let sold = 0;
  return {
    get sold() {
      return sold;
    },
    async sell() {
      sold += 1;
      const order = `order-${run}-${sold}`;
      const roll = random();
      const price = Math.round(random() * 10_000) / 100;
      const total = roll < 0.02 ? `${price} EUR` : price;
      const card = roll > 0.97 ? `${reluctantCard} ${sold}` : `5555 ${sold}`;
      await events.publishAll(
        eventTypes.map((type, index) => ({
          type,
          key: order,
          // Only the first is from the old version.
          payload: { order, total: index === 0 ? total : price, card },
        })),
      );
    },
  };
}
