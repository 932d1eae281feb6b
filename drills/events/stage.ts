import type { Broker } from '@holdfast/contracts';
import type { Place } from './place.ts';

/** What a trial has to do its worst with. */
export interface Stage {
  readonly place: Place;
  /** The file of the record. */
  readonly log: string;
  readonly broker: Broker;
  /** Has a worker run to the end. */
  worker(): void;
  /** Has a publisher run to the end; its refusals come in as codes. */
  publisher(): string[];
}
