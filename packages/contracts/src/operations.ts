import { OptionsError } from 'holdfast';
import { type NewAuditEntry, subject, subjectsMax } from './audit.ts';
import { TriageError } from './contract-errors.ts';
import type { Act } from './controls.ts';
import type { NewEvent } from './envelope.ts';
import { assertDurationMs, assertName } from './for-engines.ts';
import type { Page, PageRequest } from './page.ts';
import { assertFilterNotEmpty, assertReason, type ParkedFilter } from './parked-filter.ts';

/**
 * Stores operations. An operation changes many parked events (events set aside for an operator) in short
 * steps. `advanceOperation` decides the next step; an engine only performs it.
 */
export interface Operations {
  /**
   * Stores a new operation. It applies to the matching events that were parked at `startedAt` or before.
   * Rejects a filter that matches all events. If the `id` is already stored, returns that operation
   * unchanged.
   */
  begin(request: OperationRequest, act: Act, id?: string): Promise<Operation>;
  get(id: string): Promise<Operation | undefined>;
  /** Lists operations, the latest first. */
  list(question: OperationQuestion, page: PageRequest): Promise<Page<Operation>>;
  /**
   * Changes an operation if its stored version is still `version`. Otherwise another process has changed it
   * first, and the result is `undefined`.
   */
  move(id: string, version: number, change: OperationChange): Promise<Operation | undefined>;

  /**
   * For a discard, restore, keep or undo: changes at most `limit` events and counts them, in one transaction.
   * Returns how many; 0: none is left. Events that belong to a replay stay unchanged.
   */
  apply(id: string, limit: number): Promise<number>;

  /**
   * For a replay: assigns at most `limit` matching parked events to this operation, if they belong to no
   * other operation. Returns how many; 0: none is left.
   */
  select(id: string, limit: number): Promise<number>;
  /**
   * For a replay that stops: removes at most `limit` unpublished events from this operation. Returns how
   * many; 0: none is left.
   */
  unselect(id: string, limit: number): Promise<number>;
  /**
   * For a replay: publishes at most `limit` of its events again, the oldest parked first, and returns how
   * many. If the process crashes before the engine has recorded this, the events are published again with the
   * same ids.
   */
  release(id: string, limit: number, publish: PublishReplay): Promise<number>;
}

/**
 * Publishes replayed events to their topic. If it rejects, the release is repeated later with the same ids.
 */
export type PublishReplay = (topic: string, events: readonly NewEvent[]) => Promise<unknown>;

/**
 * The request for a new operation: what to do, and with which parked events (events that wait for an
 * operator).
 */
export type OperationRequest = ReplayRequest | ChangeRequest;
/** The kinds of operations. */
export type OperationKind = OperationRequest['kind'];

/** An operation that publishes parked events (events that wait for an operator) again. */
export interface ReplayRequest {
  readonly kind: 'replay';
  readonly filter: ParkedFilter;
  /** The topic to which the events are published. The default is the topic of each event. */
  readonly to?: string;
  /** How many events are released per second. */
  readonly rate: number;
  /**
   * How many events are released first, as a test. The others follow when these have succeeded. There is no
   * test if this is 0, or if the filter matches no more events than this.
   */
  readonly canary: number;
  /** The replay waits at least this many ms after it released the test events (`canary`). */
  readonly canaryMs: number;
  /** The most events in flight: released, but neither succeeded nor failed yet. */
  readonly outstandingMax: number;
  /** The replay stops when more than this share of the latest finished events failed again, from 0 to 1. */
  readonly stopAbove: number;
  /** How many events a dry run counted, for the progress bar. */
  readonly expected?: number;
}

/** An operation that changes parked events (events that wait for an operator) in the store. */
export type ChangeRequest = { readonly expected?: number } & (
  | { readonly kind: 'discard'; readonly filter: ParkedFilter }
  /** Restores discarded events to `parked`. The `status` of the filter is ignored. */
  | { readonly kind: 'restore'; readonly filter: ParkedFilter }
  /**
   * The engine removes the events `keepMs` after the start of this operation. The filter may name any status.
   */
  | { readonly kind: 'keep'; readonly filter: ParkedFilter; readonly keepMs: number }
  /**
   * Undoes the operation with the id `of`: a discard, restore or keep that has ended. An event stays
   * unchanged if a later operation changed it, or a replay published it.
   */
  | { readonly kind: 'undo'; readonly of: string }
);

/**
 * The stages of an operation. A replay has all except `applying`; others have only `applying`, `done`,
 * `stopping` and `stopped`.
 */
export type OperationStage =
  | 'selecting'
  | 'canary'
  | 'releasing'
  | 'tracking'
  | 'applying'
  | 'done'
  | 'stopping'
  | 'stopped';

/**
 * A stored operation on many parked events (events that wait for an operator). Because it is stored, it can
 * continue after a crash.
 */
export interface Operation {
  readonly id: string;
  readonly request: OperationRequest;
  readonly act: Act;
  readonly stage: OperationStage;
  /**
   * Increases with each `move`; changes of `counts` do not increase it. `move` succeeds only for the current
   * version.
   */
  readonly version: number;
  /** Epoch ms by the store's clock. */
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  /** Why the operation was stopped before its end; `undefined`: it was not stopped. */
  readonly stopped: string | undefined;
  readonly counts: OperationCounts;
  readonly memo: ReplayState;
}

/** How many events an operation has processed so far. */
export interface OperationCounts {
  readonly selected: number;
  readonly released: number;
  readonly succeeded: number;
  readonly failedAgain: number;
  /** How many events a discard, restore, keep or undo has changed. */
  readonly changed: number;
}

/** The data that `advanceOperation` needs for the next step of a replay. The engine only stores it. */
export interface ReplayState {
  /**
   * Enforces the rate, epoch ms: each released event adds 1/`rate` seconds. No event is released while this
   * time is in the future.
   */
  readonly paidUntil: number;
  readonly canarySince: number;
  /**
   * The counts at the start of the current window. The failure rate is computed from the change since then.
   */
  readonly judged: { readonly succeeded: number; readonly failedAgain: number };
}

/** The fields of an operation that a step changes. Fields that are not given stay unchanged. */
export interface OperationChange {
  readonly stage?: OperationStage;
  readonly stopped?: string;
  readonly memo?: ReplayState;
  /** The new rate of a replay, in events per second. */
  readonly rate?: number;
  /**
   * The person who makes the change, and the reason. If given, the engine writes the change to the audit log.
   */
  readonly act?: Act;
}

/** Selects operations. Without any field, all operations are listed. */
export interface OperationQuestion {
  readonly kind?: OperationKind;
  /** True: only operations that have not ended. */
  readonly unfinished?: boolean;
}

/** The state of a new replay, which has released no event. */
export const initialReplayState: ReplayState = {
  paidUntil: 0,
  canarySince: 0,
  judged: { succeeded: 0, failedAgain: 0 },
};

const idLengthMax = 200;

/**
 * Throws for an invalid operation. Engines call it before they look for a stored operation with this `id`.
 */
export function assertOperation(request: OperationRequest, act: Act, id: string | undefined): void {
  assertReason(act);
  if (id !== undefined) {
    if (typeof id !== 'string' || id === '' || id.length > idLengthMax)
      throw new OptionsError('id', id, `a text of 1 to ${idLengthMax} characters`);
    assertName('id', id);
  }
  switch (request?.kind) {
    case 'replay':
      assertFilterNotEmpty(request.filter);
      assertReplay(request);
      break;
    case 'discard':
    case 'restore':
      assertFilterNotEmpty(request.filter);
      break;
    case 'keep':
      assertFilterNotEmpty(request.filter);
      if (request.keepMs === undefined) throw new OptionsError('keepMs', undefined, 'a number of ms from 0');
      assertDurationMs('keepMs', request.keepMs);
      break;
    case 'undo':
      if (typeof request.of !== 'string') throw new OptionsError('of', request.of, 'the id of an operation');
      break;
    default:
      throw new OptionsError(
        'kind',
        (request as OperationRequest | undefined)?.kind,
        'replay, discard, restore, keep or undo',
      );
  }
  if (request.expected !== undefined && !isAtLeast(request.expected, 0))
    throw new OptionsError('expected', request.expected, 'a number from 0');
}

function assertReplay(request: ReplayRequest): void {
  assertRate('rate', request.rate);
  if (request.to !== undefined && (typeof request.to !== 'string' || request.to === ''))
    throw new OptionsError('to', request.to, 'the name of a topic');
  assertName('to', request.to);
  for (const name of ['canary', 'canaryMs', 'stopAbove'] as const)
    if (!isAtLeast(request[name], 0)) throw new OptionsError(name, request[name], 'a number from 0');
  if (!isAtLeast(request.outstandingMax, 1))
    throw new OptionsError('outstandingMax', request.outstandingMax, 'a number from 1');
}

function isAtLeast(value: unknown, min: number): boolean {
  return typeof value === 'number' && value >= min;
}

export function assertRate(path: string, rate: number): void {
  if (!(typeof rate === 'number' && rate > 0))
    throw new OptionsError(path, rate, 'a number of events per second above 0');
}

/** Throws for a change that `move` does not accept. */
export function assertOperationChange({ act, rate }: OperationChange): void {
  if (act !== undefined) assertReason(act);
  if (rate !== undefined) assertRate('rate', rate);
}

/**
 * Throws unless the operation with the id `of` can be undone. `undoneBy` is the id of an operation that has
 * already undone it, or `undefined`.
 */
export function assertUndoableOperation(
  of: string,
  operation: Operation | undefined,
  undoneBy: string | undefined,
): void {
  const refused = (why: string) => new TriageError('NOT_UNDOABLE', `operation ${of} ${why}`);
  if (!operation) throw refused('does not exist');
  const { kind } = operation.request;
  if (kind === 'replay' || kind === 'undo')
    throw refused(`is a ${kind}, and only a discard, restore or keep can be undone`);
  if (operation.endedAt === undefined) throw refused('has not ended');
  if (undoneBy !== undefined) throw refused(`was undone before, by operation ${undoneBy}`);
}

/** Returns the operation that `begin` stores. */
export function newOperation(id: string, request: OperationRequest, act: Act, startedAt: number): Operation {
  return {
    ...{ id, request, act, stage: request.kind === 'replay' ? 'selecting' : 'applying' },
    ...{ version: 1, startedAt, endedAt: undefined, stopped: undefined },
    counts: { selected: 0, released: 0, succeeded: 0, failedAgain: 0, changed: 0 },
    memo: initialReplayState,
  };
}

/** Returns the operation after a `move`. */
export function movedOperation(operation: Operation, change: OperationChange, now: number): Operation {
  const { stage = operation.stage, stopped = operation.stopped, memo = operation.memo, rate } = change;
  const request =
    rate === undefined || operation.request.kind !== 'replay'
      ? operation.request
      : { ...operation.request, rate };
  const isOver = stage === 'done' || stage === 'stopped';
  return {
    ...{ ...operation, request, stage, stopped, memo, version: operation.version + 1 },
    endedAt: isOver ? now : operation.endedAt,
  };
}

/** Returns the filter for the events of an operation. An undo has no filter, so the result is `undefined`. */
export function coveredBy({ request }: Pick<Operation, 'request'>): ParkedFilter | undefined {
  switch (request.kind) {
    case 'undo':
      return undefined;
    case 'keep':
      return { ...request.filter, isFree: true };
    case 'restore':
      return { ...request.filter, isFree: true, status: 'discarded' };
    default:
      return { ...request.filter, isFree: true, status: 'parked' };
  }
}

/**
 * Returns the audit entry for the start of an operation. It lists the event ids if the filter has fewer than
 * 100.
 */
export function beginEntry({ id, request, act }: Operation): NewAuditEntry {
  const ids = request.kind === 'undo' ? [] : (request.filter.ids ?? []);
  const named = ids.length < subjectsMax ? ids : [];
  return {
    ...act,
    what: request.kind,
    subjects: [subject('operation', id), ...named.map((each) => subject('event', each))],
    count: request.expected ?? ids.length,
  };
}

/** Returns the audit entry for a `move`; `undefined` if no person made the change. */
export function moveEntry(
  { id, request }: Operation,
  { act, rate }: OperationChange,
): NewAuditEntry | undefined {
  if (!act) return undefined;
  const subjects = [subject('operation', id)];
  if (rate === undefined) return { ...act, what: 'operation_stopped', subjects };
  const before = request.kind === 'replay' ? { rate: request.rate } : undefined;
  return { ...act, what: 'operation_rate', subjects, before };
}
