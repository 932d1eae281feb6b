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
import { assertAwaited } from './assert-awaited.ts';
import { assertFormat, encode, type PayloadFormat } from './payload-format.ts';
import { assertSchema, type StandardSchema, validated } from './standard-schema.ts';

/** An event to publish. The payload may be any value, and a duration may be a text such as `5m`. */
export interface EventDraft<T = unknown>
  extends Omit<NewEvent, 'payload' | 'delayMs' | 'patienceMs' | 'past'> {
  readonly payload: T;
  /** How long after its publication the event becomes due. */
  readonly delay?: Duration | undefined;
  /**
   * How long the result of the event is useful, counted from its publication. `inherit`: the time that the
   * current handler or policy call has left.
   */
  readonly patience?: Duration | 'inherit' | undefined;
}

/** The options that `producer` and `outbox` share. */
export interface DraftOptions<T, Tx> {
  /**
   * The store of the events, for example what `openSqlite` returns. Give either `engine` or `broker`.
   * Default: none.
   */
  readonly engine?: Engine<Tx> | undefined;
  /**
   * The store of the events, if you do not give `engine` or want another store. Default: that of `engine`.
   */
  readonly broker?: Broker<Tx> | undefined;
  /** The name of the topic. Required. */
  readonly topic: string;
  /**
   * The schema of the payload. It must be synchronous. `publish` rejects a payload that does not match. The
   * payload is stored as given, not as transformed by the schema. Default: none.
   */
  readonly schema?: StandardSchema<unknown, T> | undefined;
  /** How payloads are stored. `json`: any value, as JSON. `raw`: text or bytes, unchanged. Default: `json`. */
  readonly format?: PayloadFormat | undefined;
  /**
   * The patience of events that do not set their own: how long the result is useful, counted from the
   * publication. `inherit`: the time that the current request or event has left. Default: no limit.
   */
  readonly patience?: Duration | 'inherit' | undefined;
  /** The clock for delays and time limits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers, for event ids. Default: the system's. */
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
 * Returns a function that turns drafts into events. Each event gets its id before it is sent, so that a
 * failed publish can be repeated without a duplicate.
 */
export function eventFactory<T, Tx>(
  options: DraftOptions<T, Tx>,
): { readonly broker: Broker<Tx>; toEvent(draft: EventDraft<T>): NewEvent } {
  const { engine, topic, clock = systemClock, random = systemRandom } = options;
  assertAwaited(engine);
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
        checked.catch(() => {}); // Ignore a later rejection, because the call fails here anyway.
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
