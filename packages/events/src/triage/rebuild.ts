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

export interface RebuildOptions<T = unknown, Tx = unknown> {
  readonly engine: Engine<Tx>;
  readonly topic: string;
  /** The name and version of the handler. */
  readonly name: string;
  readonly handler: Handler<T, Tx>;
  readonly schema?: StandardSchema<T> | undefined;
  readonly format?: PayloadFormat | undefined;
  /** Only events that were first published at this time or later, epoch ms; all unless given. */
  readonly from?: number | undefined;
  /** Only events that were first published before this time, epoch ms; all unless given. */
  readonly to?: number | undefined;
  /**
   * The name of this rebuild; a new name unless given. To resume a stopped rebuild, give its name again: no event is
   * handled twice.
   */
  readonly run?: string | undefined;
  /** How long the ledger remembers which events this rebuild has handled; 7 days unless given. */
  readonly keep?: Duration | undefined;
  readonly onProgress?: ((progress: RebuildProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
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
  run: true,
  keep: true,
  onProgress: true,
  signal: true,
  clock: true,
  random: true,
};

export interface RebuildProgress {
  readonly run: string;
  readonly handled: number;
  /** How many events were skipped, because an earlier start of the same rebuild had handled them. */
  readonly skipped: number;
}

const pageMax = 500;
const leaseMs = 60_000;

/**
 * Calls a handler again for the kept events of a topic, one after the other in the order of publication. The handler
 * sees the mode `replay`. Each commit also records that its event is handled, so that a rebuild can be stopped and
 * resumed at any time. An error ends the rebuild, and so does any handler result other than `done` and `commit`.
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
  let cursor: string | undefined;

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
    // The lease on the event ended before the store answered. Nothing was committed, and another process may handle the
    // event.
    if (!completed?.took) throw new LeaseLostError(event.id);
  }

  /** Handles an event and returns true. Returns false if this rebuild has handled the event before. */
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
          // Release the event in the ledger, so that the rebuild can be resumed immediately. If the release fails, the
          // lease on the event ends within a minute.
          await ledger!.release([hold]).catch(() => {});
          throw error;
        } finally {
          heartbeat.clear();
        }
        return true;
      }
      if (begun?.kind === 'done') return false;
      // Throw: if the event were skipped, nobody would notice that it is missing in the result.
      if (begun?.kind !== 'running') throw new RebuildError(event.id, begun?.kind);
      // Another process handles the event, or died while it handled the event. Wait, because later events must not
      // overtake this event.
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
 * Ignores the value. It returns a promise only if the value is a promise, because some transactions are synchronous.
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
