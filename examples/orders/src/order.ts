import type { StandardSchema } from '@holdfast/events';

/** What happens to an order. The key of each event is the order's id, so that they happen one after the other. */
export interface OrderEvent {
  readonly order: string;
  readonly total: number;
  readonly card: string;
}

export const eventTypes = ['placed', 'packed', 'shipped'] as const;

/** Any Standard Schema would do, such as one of zod's; this one is written by hand so that the example needs no library. */
export const orderSchema: StandardSchema<OrderEvent> = {
  '~standard': {
    version: 1,
    vendor: 'example',
    validate(value) {
      const { order, total, card } = Object(value) as Record<string, unknown>;
      if (typeof order === 'string' && typeof total === 'number' && typeof card === 'string') {
        return { value: { order, total, card } };
      }
      const wrong = typeof total === 'number' ? 'order' : 'total';
      return { issues: [{ message: `expected a ${wrong === 'total' ? 'number' : 'text'}`, path: [wrong] }] };
    },
  },
};
