import type { Clock } from 'holdfast';
import type { Act } from './controls.ts';
import type { NewEvent } from './envelope.ts';
import {
  assertRate,
  type Operation,
  type OperationChange,
  type OperationStage,
  type PublishReplay,
  type ReplayRequest,
  type ReplayState,
} from './operations.ts';
import { assertReason } from './parked-filter.ts';
import type { ParkedEvent, Triage } from './triage.ts';

/**
 * The default settings of a replay: 5 events as a test, then 50 events per second. It stops if more than half
 * of the events fail again.
 */
export const defaultReplay: Omit<ReplayRequest, 'filter'> = {
  kind: 'replay',
  rate: 50,
  canary: 5,
  canaryMs: 5000,
  outstandingMax: 500,
  stopAbove: 0.5,
};

/** The result of one step of an operation. */
export interface OperationStep {
  readonly operation: Operation;
  /** The time to wait before the next step. 0: no wait. `undefined`: the operation has ended. */
  readonly waitMs: number | undefined;
}

const batchMax = 1000;
/** The share of failed events is computed over 50 finished events at a time. */
const windowSize = 50;
const checkMs = 200;
/** After a pause, the replay releases at most the events of this many ms at once. */
const burstMs = 1000;
/** A replay begins with the events of this many ms at its rate, and with at least one event. */
const startMs = 20;

/**
 * Performs the next short step of an operation (a change of many parked events, such as a replay). All state
 * is in the store, so any process can do the next step. If two processes try, only one succeeds.
 */
export async function advanceOperation(
  triage: Triage,
  id: string,
  clock: Clock,
  publish: PublishReplay,
): Promise<OperationStep | undefined> {
  const operation = await triage.operations.get(id);
  if (!operation) return undefined;
  const { request, stage } = operation;
  const step = { triage, operation, now: clock.epochMs(), publish };
  const waitMs =
    request.kind === 'replay'
      ? await replaySteps[stage]({ ...step, request })
      : await changeSteps[stage](step);
  return { operation: (await triage.operations.get(id)) ?? operation, waitMs };
}

/**
 * Stops an operation (a change of many parked events). Changes that it has already made stay. Returns false
 * for an unknown id, and for an operation that is stopping or has ended.
 */
export async function stopOperation(triage: Triage, id: string, act: Act): Promise<boolean> {
  assertReason(act);
  return moveUntilDone(triage, id, () => ({ stage: 'stopping', stopped: act.why, act }));
}

/**
 * Changes how many events a replay releases per second. Returns false if the replay is unknown, is stopping
 * or has ended.
 */
export async function setRate(triage: Triage, id: string, rate: number, act: Act): Promise<boolean> {
  assertReason(act);
  assertRate('rate', rate);
  return moveUntilDone(triage, id, ({ request }) => (request.kind === 'replay' ? { rate, act } : undefined));
}

/** Changes an operation, and tries again if another process changes it at the same time. */
async function moveUntilDone(
  triage: Triage,
  id: string,
  changeOf: (operation: Operation) => OperationChange | undefined,
): Promise<boolean> {
  for (;;) {
    const operation = await triage.operations.get(id);
    if (!operation || operation.endedAt !== undefined || operation.stage === 'stopping') return false;
    const change = changeOf(operation);
    if (!change) return false;
    if (await triage.operations.move(id, operation.version, change)) return true;
  }
}

/** Returns the event that a replay publishes. It has the same id and the edited content. */
export function replayed(event: ParkedEvent, operation: string): NewEvent {
  const { id, payload, type, key, tenant, headers, correlationId, idempotencyKey } = event;
  const past = { originTopic: event.originTopic, firstSeenAt: event.firstSeenAt, replay: operation };
  return {
    id,
    payload,
    headers,
    correlationId,
    idempotencyKey,
    past,
    ...(type !== undefined && { type }),
    ...(key !== undefined && { key }),
    ...(tenant !== undefined && { tenant }),
  };
}

interface Step {
  readonly triage: Triage;
  readonly operation: Operation;
  readonly now: number;
  readonly publish: PublishReplay;
}

interface ReplayStep extends Step {
  readonly request: ReplayRequest;
}

/**
 * Performs one step of an operation. Returns how many ms to wait before the next step; `undefined`: the
 * operation has ended.
 */
type TakeStep<S> = (step: S) => Promise<number | undefined>;

const replaySteps: Record<OperationStage, TakeStep<ReplayStep>> = {
  selecting: select,
  canary: sendCanary,
  releasing: release,
  tracking: track,
  applying: over,
  stopping: giveBack,
  done: over,
  stopped: over,
};

const changeSteps: Record<OperationStage, TakeStep<Step>> = {
  selecting: over,
  canary: over,
  releasing: over,
  tracking: over,
  applying: apply,
  stopping: stopNow,
  done: over,
  stopped: over,
};

async function apply({ triage, operation }: Step): Promise<number> {
  const changed = await triage.operations.apply(operation.id, batchMax);
  return changed > 0 ? 0 : move(triage, operation, { stage: 'done' });
}

async function select({ triage, operation, request, now }: ReplayStep): Promise<number> {
  const selected = await triage.operations.select(operation.id, batchMax);
  if (selected > 0) return 0;
  // Release a few test events first (the canary) only if the replay has other events, too.
  const hasCanary = request.canary > 0 && operation.counts.selected > request.canary;
  return move(triage, operation, hasCanary ? { stage: 'canary' } : releasingFrom(now, operation, request));
}

async function sendCanary({ triage, operation, request, now, publish }: ReplayStep): Promise<number> {
  const { counts, memo } = operation;
  const wanted = Math.min(request.canary, counts.selected);
  if (counts.failedAgain > 0) return move(triage, operation, stopped('the canary failed again'));
  if (counts.released < wanted) {
    await triage.operations.release(operation.id, wanted - counts.released, publish);
    return move(triage, operation, { memo: { ...memo, canarySince: now } });
  }
  const watchedMs = now - memo.canarySince;
  if (counts.succeeded < counts.released) return checkMs;
  if (watchedMs < request.canaryMs) return Math.max(1, Math.min(checkMs, request.canaryMs - watchedMs));
  return move(triage, operation, releasingFrom(now, operation, request));
}

/**
 * Returns the change to the stage `releasing`. It sets `paidUntil` to a recent time. With an older time, the
 * replay would release a whole second of events at once.
 */
function releasingFrom(now: number, { memo }: Operation, { rate }: ReplayRequest): OperationChange {
  return { stage: 'releasing', memo: { ...memo, paidUntil: now - Math.max(startMs, 1000 / rate) } };
}

async function release({ triage, operation, request, now, publish }: ReplayStep): Promise<number> {
  const { counts, memo } = operation;
  if (failsTooOften(operation, request)) return move(triage, operation, stopped('too many failed again'));
  if (counts.released >= counts.selected) return move(triage, operation, { stage: 'tracking' });

  const outstanding = counts.released - counts.succeeded - counts.failedAgain;
  const eachMs = 1000 / request.rate;
  const paidUntil = Math.max(memo.paidUntil, now - burstMs);
  const affordable = Math.max(0, Math.floor((now - paidUntil) / eachMs));
  const room = Math.min(affordable, request.outstandingMax - outstanding, batchMax);
  if (room < 1) return affordable < 1 ? Math.max(1, paidUntil + eachMs - now) : checkMs;

  // Count these events against the rate before they are released. If the process crashes in between, the
  // replay is late, but never too fast.
  const paid = await triage.operations.move(operation.id, operation.version, {
    memo: { ...memo, paidUntil: paidUntil + room * eachMs, judged: judgedNow(operation) },
  });
  if (paid) await triage.operations.release(operation.id, room, publish);
  return 0;
}

async function track({ triage, operation }: Step): Promise<number> {
  const { released, succeeded, failedAgain } = operation.counts;
  return succeeded + failedAgain < released ? checkMs : move(triage, operation, { stage: 'done' });
}

async function giveBack({ triage, operation }: Step): Promise<number> {
  const returned = await triage.operations.unselect(operation.id, batchMax);
  return returned > 0 ? 0 : move(triage, operation, { stage: 'stopped' });
}

async function stopNow({ triage, operation }: Step): Promise<number> {
  return move(triage, operation, { stage: 'stopped' });
}

async function over(): Promise<undefined> {
  return undefined;
}

async function move(triage: Triage, operation: Operation, change: OperationChange): Promise<number> {
  await triage.operations.move(operation.id, operation.version, change);
  return 0;
}

function stopped(because: string): OperationChange {
  return { stage: 'stopping', stopped: because };
}

function failsTooOften({ counts, memo }: Operation, { stopAbove }: ReplayRequest): boolean {
  const failed = counts.failedAgain - memo.judged.failedAgain;
  const outcomes = failed + counts.succeeded - memo.judged.succeeded;
  return outcomes >= Math.min(windowSize, counts.selected) && failed > outcomes * stopAbove;
}

/** Returns the counts at the start of the current window of 50 finished events. */
function judgedNow({ counts, memo }: Operation): ReplayState['judged'] {
  const outcomes = counts.succeeded + counts.failedAgain - memo.judged.succeeded - memo.judged.failedAgain;
  return outcomes < windowSize
    ? memo.judged
    : { succeeded: counts.succeeded, failedAgain: counts.failedAgain };
}
