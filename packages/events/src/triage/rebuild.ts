import { type Engine, type Hold, type SettledEvent, timeOrderedId } from '@holdfast/contracts';
import {
  type Clock,
  type Duration,
  durationMs,
  OptionsError,
  type Random,
  sleep,
  systemClock,
  systemRandom,
  Timer,
} from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { LeaseLostError, RebuildError } from '../consumer/event-errors.ts';
import { isHandlerResult } from '../consumer/handler-result.ts';
import type { Handler } from '../consumer/task.ts';
import { Task } from '../consumer/task.ts';
import { assertAwaited } from '../publish/assert-awaited.ts';
import { assertFormat, type PayloadFormat } from '../publish/payload-format.ts';
import { assertSchema, type StandardSchema, validated } from '../publish/standard-schema.ts';

/** The options of `rebuild`. Required are `engine`, `topic`, `name` and `handler`. */
export interface RebuildOptions<T = unknown, Tx = unknown> {
  /** The store of the events. Required. */
  readonly engine: Engine<Tx>;
  /**
   * The topic whose finished events are handled again. The topic must keep them (`keepSettled`). Required.
   */
  readonly topic: string;
  /** The name and version of the handler, such as `invoices@2`. Required. */
  readonly name: string;
  /** Called for each event. Required. */
  readonly handler: Handler<T, Tx>;
  /**
   * The schema of the payload: any Standard Schema. A payload that does not match ends the rebuild with an
   * error. Default: none.
   */
  readonly schema?: StandardSchema<T> | undefined;
  /** How payloads are stored. `json`: any value, as JSON. `raw`: text or bytes, unchanged. Default: `json`. */
  readonly format?: PayloadFormat | undefined;
  /** Rebuild only events that were first published at this time or later, epoch ms. Default: all. */
  readonly from?: number | undefined;
  /** Rebuild only events that were first published before this time, epoch ms. Default: all. */
  readonly to?: number | undefined;
  /**
   * Rebuild only events after this position, which is a cursor of `broker.history`. In a stream of NATS, it
   * is a sequence number. Default: from the first event on.
   */
  readonly after?: string | undefined;
  /**
   * The name of this rebuild. To resume a rebuild, give the same name again: no event is handled twice.
   * Default: a new name.
   */
  readonly run?: string | undefined;
  /** How long the ledger remembers which events this rebuild has handled. Default: `7d`. */
  readonly keep?: Duration | undefined;
  /** Called after each page of events. Default: none. */
  readonly onProgress?: ((progress: RebuildProgress) => void) | undefined;
  /** Aborts the rebuild, which can be resumed later. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** The clock for delays and time limits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: the system's. */
  readonly random?: Random | undefined;
}

const known: Readonly<Record<keyof RebuildOptions, true>> = {
  engine: true,
  topic: true,
  name: true,
  handler: true,
  schema: true,
  format: true,
  from: true,
  to: true,
  after: true,
  run: true,
  keep: true,
  onProgress: true,
  signal: true,
  clock: true,
  random: true,
};

/** How many events a rebuild has handled, and how many it has skipped. */
export interface RebuildProgress {
  readonly run: string;
  readonly handled: number;
  /** How many events were skipped, because an earlier call with the same `run` has handled them. */
  readonly skipped: number;
}

const pageMax = 500;
const leaseMs = 60_000;

/**
 * Calls a handler again for the finished events that a topic keeps, in the order of publication. A rebuild
 * can be stopped and resumed at any time. An error ends it, and so does any handler result except `done` and
 * `commit`.
 */
export async function rebuild<T = unknown, Tx = unknown>(
  options: RebuildOptions<T, Tx>,
): Promise<RebuildProgress> {
  assertKnownFields(known, options);
  const { engine, topic, name, clock = systemClock, random = systemRandom } = options;
  assertAwaited(engine);
  const { broker, ledger } = engine;
  if (!broker || !ledger)
    throw new OptionsError('engine', engine.name, 'an engine with a broker and a ledger');
  const { from, to, onProgress, signal } = options;
  const schema = assertSchema(options.schema);
  if (typeof options.handler !== 'function') throw new OptionsError('handler', options.handler, 'a function');
  const run = options.run ?? timeOrderedId(clock, random)();
  const keepMs = durationMs(options.keep ?? '7d', 'keep');
  const scope = `rebuild/${name}/${run}`;
  const settings = { clock, format: assertFormat(options.format ?? 'json'), attemptTimeoutMs: Infinity };
  let progress: RebuildProgress = { run, handled: 0, skipped: 0 };
  let cursor = options.after;

  async function handle(event: SettledEvent, hold: Hold): Promise<void> {
    const task = taskOf<T>(event, settings, clock);
    if (schema) task.payload = await validated(schema, task.payload);
    const given = await options.handler(task);
    const answer = isHandlerResult(given) ? given : undefined;
    if (answer && answer.kind !== 'done' && answer.kind !== 'commit') {
      throw new OptionsError(`the answer for event ${event.id}`, answer.kind, 'done or commit, in a rebuild');
    }
    const commit = answer?.kind === 'commit' ? answer.commit : undefined;
    const [completed] = await ledger!.complete([
      {
        hold,
        record: undefined,
        keepMs,
        ...(commit && { commit: (tx: Tx) => ignoreValue(commit(tx)) }),
      },
    ]);
    if (completed?.because === 'commit_failed') throw completed.error;
    // The lease of the key in the ledger ended before the commit, so nothing was committed.
    if (!completed?.took) throw new LeaseLostError(event.id);
  }

  /**
   * Handles the event and returns true. If this rebuild has already handled the event, returns false instead.
   */
  async function handleOnce(event: SettledEvent): Promise<boolean> {
    const claim = { scope, key: event.id, fingerprint: '', leaseMs, keepMs, whenLost: 'takeOver' as const };
    for (;;) {
      signal?.throwIfAborted();
      const [begun] = await ledger!.begin([claim]);
      if (begun?.kind === 'acquired') {
        const { hold } = begun;
        const heartbeat = new Timer(clock, () => {
          heartbeat.setIn(leaseMs / 3);
          ledger!.extend([hold], leaseMs).catch(() => {});
        });
        heartbeat.setIn(leaseMs / 3);
        try {
          await handle(event, hold);
        } catch (error) {
          // Release the key in the ledger, so that the rebuild can be resumed immediately. If that fails, the
          // lease of the key ends within a minute.
          await ledger!.release([hold]).catch(() => {});
          throw error;
        } finally {
          heartbeat.clear();
        }
        return true;
      }
      if (begun?.kind === 'done') return false;
      if (begun?.kind !== 'running') throw new RebuildError(event.id, begun?.kind);
      // Another process handles this event. Wait for it, because events must be handled in order.
      await sleep(clock, begun.retryAfterMs, signal);
    }
  }

  do {
    const page = await broker.history(topic, {
      limit: pageMax,
      ...(from !== undefined && { from }),
      ...(to !== undefined && { to }),
      ...(cursor !== undefined && { cursor }),
    });
    for (const event of page.items) {
      if (event.how === 'discard') continue;
      if (await handleOnce(event)) progress = { ...progress, handled: progress.handled + 1 };
      else progress = { ...progress, skipped: progress.skipped + 1 };
    }
    ({ cursor } = page);
    onProgress?.(progress);
  } while (cursor !== undefined);
  return progress;
}

/**
 * Returns `undefined` instead of the value `given`. Returns a promise only if `given` is a promise, because a
 * synchronous transaction cannot wait for one.
 */
function ignoreValue(given: unknown): undefined | Promise<undefined> {
  return given instanceof Promise ? given.then(() => undefined) : undefined;
}

function taskOf<T>(
  event: SettledEvent,
  settings: { clock: Clock; format: PayloadFormat; attemptTimeoutMs: number },
  clock: Clock,
): Task<T> {
  const { how: _, settledAt: __, ...envelope } = event;
  const delivery = {
    ...envelope,
    replay: 'rebuild',
    attempts: 0,
    attempt: 1,
    snoozes: 0,
    deaths: 0,
    nextDelayMs: undefined,
    lastError: undefined,
    story: [],
    lease: { topic: event.topic, id: event.id, token: '' },
    patienceLeftMs: Infinity,
    suspect: false,
    diagnosis: undefined,
  };
  const batch = { tasks: [], leaseEndsAt: Infinity, open: 0, bytes: 0 };
  return new Task<T>(delivery, settings, batch, clock.now());
}
