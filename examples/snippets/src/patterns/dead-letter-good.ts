import { type Consumer, type ConsumerOptions, consumer, park } from '@holdfast/events';

/** What fails for a moment is tried six times. What can never succeed is parked at once, with the reason. */
export function shipParcels(
  ship: (weight: number) => Promise<void>,
  options: Pick<ConsumerOptions, 'engine' | 'clock' | 'random'>,
): Consumer {
  return consumer({
    ...options,
    topic: 'parcels',
    policy: { attempts: 6 },
    handler: async ({ payload }) => {
      const { weight } = payload as { weight: number };
      if (!(weight > 0)) return park('a parcel without a weight');
      await ship(weight);
      return undefined;
    },
  });
}
