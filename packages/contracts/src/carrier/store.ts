import { OptionsError } from 'holdfast';
import type { Broker } from '../broker.ts';
import type { Engine } from '../engine.ts';
import type { Triage } from '../triage.ts';

/**
 * An engine that stores what a message broker cannot store: for example retries, the order of keys and parked
 * events (set aside for an operator).
 */
export interface Store extends Engine {
  readonly broker: Broker & Required<Pick<Broker, 'publishBehind'>>;
  readonly triage: Triage;
}

export function assertStore(store: Engine | undefined): Store | undefined {
  if (store === undefined) return undefined;
  if (!store?.broker?.publishBehind || !store.triage || store.features?.ordering !== true)
    throw new OptionsError(
      'store',
      store?.name ?? store,
      'an engine that keeps the order of keys and parked events, such as SQLite or PostgreSQL',
    );
  return store as Store;
}
