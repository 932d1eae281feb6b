import { type Broker, type Engine, type NewEvent, timeOrderedId } from '@holdfast/contracts';
import {
  ambientContext,
  type Clock,
  type Duration,
  durationMs,
  OptionsError,
  type Random,
  systemClock,
  systemRandom,
} from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { assertFormat, encode, type PayloadFormat } from './payload-format.ts';
import { assertSchema, type StandardSchema, validated } from './standard-schema.ts';

/** An event that a producer publishes. The payload is any value, and durations may be texts such as `5m`. */
export interface EventDraft<T = unknown>
  extends Omit<NewEvent, 'payload' | 'delayMs' | 'patienceMs' | 'past'> {
  readonly payload: T;
  /** The event becomes due this long after the publish. */
  readonly delay?: Duration | undefined;
  /**
   * How long the customer waits for the result, counted from the publish. `inherit`: the time that is left to the
   * surrounding policy run or handler.
   */
  readonly patience?: Duration | 'inherit' | undefined;
}

export interface DraftOptions<T, Tx> {
  readonly engine?: Engine<Tx> | undefined;
  readonly broker?: Broker<Tx> | undefined;
  readonly topic: string;
  /**
   * Payloads that do not match this schema are refused. The schema must be synchronous. The payload is stored as it was
   * given, not as the schema transforms it: a consumer with the same schema transforms it later.
   */
  readonly schema?: StandardSchema<unknown, T> | undefined;
  readonly format?: PayloadFormat | undefined;
  /** The patience of events whose draft gives no patience. */
  readonly patience?: Duration | 'inherit' | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

export const draftOptions: Readonly<Record<keyof DraftOptions<unknown, unknown>, true>> = {
  engine: true,
  broker: true,
  topic: true,
  schema: true,
  format: true,
  patience: true,
  clock: true,
  random: true,
};

const draftFields: Readonly<Record<keyof EventDraft, true>> = {
  id: true,
  payload: true,
  type: true,
  key: true,
  tenant: true,
  headers: true,
  correlationId: true,
  idempotencyKey: true,
  delay: true,
  dueAt: true,
  patience: true,
};

/**
 * Returns a function that turns drafts into events. It gives each event an id, so that a publish without an answer can
 * be repeated safely.
 */
export function eventFactory<T, Tx>(
  options: DraftOptions<T, Tx>,
): { readonly broker: Broker<Tx>; toEvent(draft: EventDraft<T>): NewEvent } {
  const { engine, topic, clock = systemClock, random = systemRandom } = options;
  const broker = options.broker ?? engine?.broker;
  if (!broker) throw new OptionsError('broker', broker, 'a broker, or an engine that has one');
  if (typeof topic !== 'string' || topic === '')
    throw new OptionsError('topic', topic, 'the name of a topic');
  const format = assertFormat(options.format ?? 'json');
  const schema = assertSchema(options.schema);
  const newId = timeOrderedId(clock, random);

  function patienceMsOf(patience: Duration | 'inherit' | undefined): number {
    if (patience === undefined) return Infinity;
    if (patience !== 'inherit') return durationMs(patience, 'patience');
    return Math.max(0, (ambientContext()?.patienceEndsAt ?? Infinity) - clock.now());
  }

  return {
    broker,
    toEvent(draft) {
      assertKnownFields(draftFields, draft);
      const { id = newId(), payload, delay, patience = options.patience, ...rest } = draft;
      const checked = schema && validated(schema, payload);
      if (checked instanceof Promise) {
        checked.catch(() => {}); // a rejection must not be unhandled
        throw new OptionsError('schema', 'a promise', 'one that answers at once');
      }
      const patienceMs = patienceMsOf(patience);
      return {
        ...rest,
        id,
        payload: encode(format, payload),
        ...(delay !== undefined && { delayMs: durationMs(delay, 'delay') }),
        ...(patienceMs < Infinity && { patienceMs }),
      };
    },
  };
}
