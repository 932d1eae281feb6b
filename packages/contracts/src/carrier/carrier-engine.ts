import type { Engine } from '../engine.ts';
import type { Carrier } from './carrier.ts';
import { type CarrierBroker, type CarrierOptions, carrierBroker } from './carrier-broker.ts';

/** An engine on a message broker such as Kafka or SQS. Without a store, it has only a broker and controls. */
export interface CarrierEngine extends Engine {
  readonly broker: CarrierBroker;
}

/**
 * Creates an engine on a carrier (a message broker). Triage, ledger and the other contracts come from the
 * store, if one is given.
 */
export function carrierEngine<Handle>(
  carrier: Carrier<Handle>,
  options: CarrierOptions & {
    /** Which failures a published event survives. Required. */
    readonly durability: Engine['durability'];
  },
): CarrierEngine {
  const { durability, ...rest } = options;
  const { store } = rest;
  const broker = carrierBroker(carrier, rest);
  return {
    name: carrier.name,
    durability,
    features: broker.features,
    broker,
    controls: broker.controls,
    ...(store?.ledger && { ledger: store.ledger }),
    ...(store?.triage && { triage: store.triage }),
    ...(store?.rateLimits && { rateLimits: store.rateLimits }),
    ...(store?.journal && { journal: store.journal }),
    ...(store?.audit && { audit: store.audit }),
    ...(store?.presence && { presence: store.presence }),

    async sweep(limit) {
      const removed = (await carrier.sweep?.(limit)) ?? 0;
      return removed + ((await store?.sweep(limit - removed)) ?? 0);
    },

    close: () => broker.close(),
  };
}
