import type { Clock } from 'holdfast';
import type { Act } from './controls.ts';
import type { NewEvent } from './envelope.ts';
import { assertReason } from './parked-filter.ts';
import type {
  ParkedEvent,
  PublishReplay,
  ReplayChange,
  ReplayOperation,
  ReplayRequest,
  ReplayStage,
  ReplayState,
  Triage,
} from './triage.ts';

export const defaultReplay: Omit<ReplayRequest, 'filter'> = {
  rate: 50,
  canary: 5,
  canaryMs: 5000,
  outstandingMax: 500,
  stopAbove: 0.5,
};

export const initialReplayState: ReplayState = {
  paidUntil: 0,
  canarySince: 0,
  judged: { succeeded: 0, failedAgain: 0 },
};

export interface ReplayStep {
  readonly operation: ReplayOperation;
  /** The time to wait before the next step: 0 means no wait, `undefined` means that the replay has ended. */
  readonly waitMs: number | undefined;
}

/** The most events that one step selects or releases. */
const batchMax = 1000;
/** The share of events that failed again is computed over windows of 50 finished events. */
const windowSize = 50;
/** The time between two checks while a replay waits for released events to succeed or fail. */
const checkMs = 200;
/** After a pause, the replay may immediately release as many events as its rate allows in this time, but no more. */
const burstMs = 1000;

/**
 * Performs the next short step of a replay: selects, releases or counts events. All state is in the store, so any
 * process may perform the next step, also after a crash. If two processes try the same step at the same time, only one
 * of them changes the replay.
 */
export async function advanceReplay(
  triage: Triage,
  id: string,
  clock: Clock,
  publish: PublishReplay,
): Promise<ReplayStep | undefined> {
  const operation = await triage.replays.get(id);
  if (!operation) return undefined;
  const step = { triage, operation, now: clock.epochMs(), publish };
  const waitMs = await steps[operation.stage](step);
  return { operation: (await triage.replays.get(id)) ?? operation, waitMs };
}

/**
 * Stops a replay. Its events that are not released yet become free for other operations. False: there is no such
 * replay, or it is stopping or has ended already.
 */
export async function stopReplay(triage: Triage, id: string, act: Act): Promise<boolean> {
  assertReason(act);
  for (;;) {
    const operation = await triage.replays.get(id);
    if (!operation || steps[operation.stage] === over || operation.stage === 'stopping') return false;
    if (await triage.replays.move(id, operation.version, { stage: 'stopping', stopped: act.why, act }))
      return true;
  }
}

/**
 * Returns the event that a replay publishes. It has the same id, the edited content, and in `past` the first topic and
 * time of the original.
 */
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
  readonly operation: ReplayOperation;
  readonly now: number;
  readonly publish: PublishReplay;
}

type TakeStep = (step: Step) => Promise<number | undefined>;

const steps: Record<ReplayStage, TakeStep> = {
  selecting: select,
  canary: sendCanary,
  releasing: release,
  tracking: track,
  stopping: giveBack,
  done: over,
  stopped: over,
};

async function select({ triage, operation }: Step): Promise<number> {
  const selected = await triage.replays.select(operation.id, batchMax);
  if (selected > 0) return 0;
  return move(triage, operation, { stage: operation.request.canary > 0 ? 'canary' : 'releasing' });
}

async function sendCanary({ triage, operation, now, publish }: Step): Promise<number> {
  const { request, counts, memo } = operation;
  const wanted = Math.min(request.canary, counts.selected);
  if (counts.failedAgain > 0) return move(triage, operation, stopped('the canary failed again'));
  if (counts.released < wanted) {
    await triage.replays.release(operation.id, wanted - counts.released, publish);
    return move(triage, operation, { memo: { ...memo, canarySince: now } });
  }
  const watchedMs = now - memo.canarySince;
  if (counts.succeeded < counts.released) return checkMs;
  if (watchedMs < request.canaryMs) return Math.max(1, Math.min(checkMs, request.canaryMs - watchedMs));
  return move(triage, operation, { stage: 'releasing' });
}

async function release({ triage, operation, now, publish }: Step): Promise<number> {
  const { request, counts, memo } = operation;
  if (failsTooOften(operation)) return move(triage, operation, stopped('too many failed again'));
  if (counts.released >= counts.selected) return move(triage, operation, { stage: 'tracking' });

  const outstanding = counts.released - counts.succeeded - counts.failedAgain;
  const eachMs = 1000 / request.rate;
  const paidUntil = Math.max(memo.paidUntil, now - burstMs);
  const affordable = Math.max(0, Math.floor((now - paidUntil) / eachMs));
  const room = Math.min(affordable, request.outstandingMax - outstanding, batchMax);
  if (room < 1) return affordable < 1 ? Math.max(1, paidUntil + eachMs - now) : checkMs;

  // Record the used rate before the release. If the process crashes between the two, the replay is delayed, but it
  // never exceeds its rate. The version check lets only one of two processes release.
  const paid = await triage.replays.move(operation.id, operation.version, {
    memo: { ...memo, paidUntil: paidUntil + room * eachMs, judged: judgedNow(operation) },
  });
  if (paid) await triage.replays.release(operation.id, room, publish);
  return 0;
}

async function track({ triage, operation }: Step): Promise<number> {
  const { released, succeeded, failedAgain } = operation.counts;
  return succeeded + failedAgain < released ? checkMs : move(triage, operation, { stage: 'done' });
}

async function giveBack({ triage, operation }: Step): Promise<number> {
  const returned = await triage.replays.unselect(operation.id, batchMax);
  return returned > 0 ? 0 : move(triage, operation, { stage: 'stopped' });
}

async function over(): Promise<undefined> {
  return undefined;
}

async function move(triage: Triage, operation: ReplayOperation, change: ReplayChange): Promise<number> {
  await triage.replays.move(operation.id, operation.version, change);
  return 0;
}

function stopped(because: string): ReplayChange {
  return { stage: 'stopping', stopped: because };
}

function failsTooOften({ counts, memo, request }: ReplayOperation): boolean {
  const failed = counts.failedAgain - memo.judged.failedAgain;
  const outcomes = failed + counts.succeeded - memo.judged.succeeded;
  return outcomes >= Math.min(windowSize, counts.selected) && failed > outcomes * request.stopAbove;
}

/**
 * Returns the counts at the start of the current window. A new window starts only when the current window has 50
 * finished events, so that every failure is counted in a window.
 */
function judgedNow({ counts, memo }: ReplayOperation): ReplayState['judged'] {
  const outcomes = counts.succeeded + counts.failedAgain - memo.judged.succeeded - memo.judged.failedAgain;
  return outcomes < windowSize
    ? memo.judged
    : { succeeded: counts.succeeded, failedAgain: counts.failedAgain };
}
