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
import { assertFormat, type PayloadFormat } from '../publish/payload-format.ts';
import { assertSchema, type StandardSchema, validated } from '../publish/standard-schema.ts';

/** The options of `rebuild`. Required are `engine`, `topic`, `name` and `handler`. */
export interface RebuildOptions<T = unknown, Tx = unknown> {
  /** The store of the events. Required. */
  readonly engine: Engine<Tx>;
  /** The topic whose kept events are handled again. Required. */
  readonly topic: string;
  /** The name and version of the handler, such as `invoices@2`. Required. */
  readonly name: string;
  /** Called for each event. Required. */
  readonly handler: Handler<T, Tx>;
  /** A payload that does not match ends the rebuild with an error. Any Standard Schema. Default: none. */
  readonly schema?: StandardSchema<T> | undefined;
  /** How payloads are stored. `json`: any value, as JSON. `raw`: text or bytes, unchanged. Default: `json`. */
  readonly format?: PayloadFormat | undefined;
  /** Only events that were first published at this time or later, epoch ms. Default: all. */
  readonly from?: number | undefined;
  /** Only events that were first published before this time, epoch ms. Default: all. */
  readonly to?: number | undefined;
  /**
   * Only events behind this position, a cursor of `broker.history`. In a stream of NATS, it is a sequence number. Default:
   * from the first event on.
   */
  readonly after?: string | undefined;
  /**
   * The name of this rebuild. Give the same name to resume a rebuild: no event is handled twice. Default: a new name.
   */
  readonly run?: string | undefined;
  /** How long it is remembered which events this rebuild has handled. Default: `7d`. */
  readonly keep?: Duration | undefined;
  /** Called after each page of events. Default: none. */
  readonly onProgress?: ((progress: RebuildProgress) => void) | undefined;
  /** Ends the rebuild. It can be resumed. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** The clock of waits and limits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of chance. Default: the system's. */
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
  /** How many events this rebuild had handled before it was resumed. */
  readonly skipped: number;
}

const pageMax = 500;
const leaseMs = 60_000;

/**
 * Calls a handler again for the kept events of a topic, in the order of publication. It can be stopped and resumed at
 * any time. An error ends it, and so does any handler result except `done` and `commit`.
 */
export async function rebuild<T = unknown, Tx = unknown>(
  options: RebuildOptions<T, Tx>,
): Promise<RebuildProgress> {
  assertKnownFields(known, options);
  const { engine, topic, name, clock = systemClock, random = systemRandom } = options;
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
    // The lease ended before the commit, so nothing was committed.
    if (!completed?.took) throw new LeaseLostError(event.id);
  }

  /** Returns false if this rebuild has already handled the event. */
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
          // Release the key, so that the rebuild can be resumed immediately. If that fails, the lease ends within a minute.
          await ledger!.release([hold]).catch(() => {});
          throw error;
        } finally {
          heartbeat.clear();
        }
        return true;
      }
      if (begun?.kind === 'done') return false;
      if (begun?.kind !== 'running') throw new RebuildError(event.id, begun?.kind);
      // Another process handles this event, and later events must not overtake it.
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

/** Returns a promise only if `given` is a promise: a synchronous transaction cannot wait for one. */
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
