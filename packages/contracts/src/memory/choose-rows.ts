import type { LeaseRequest, WaitingState } from '../broker.ts';
import type { Row, Topic } from './storage.ts';

export function rowStatesOf(topic: Topic, now: number, isHeld: (row: Row) => boolean): [Row, WaitingState][] {
  const orderKeys = new Set<string>();
  return [...topic.rows.values()].map((row) => {
    const isBehind = row.orderKey !== undefined && orderKeys.has(row.orderKey);
    if (row.orderKey !== undefined) orderKeys.add(row.orderKey);
    return [row, stateOf(row, now, isBehind, isHeld(row))];
  });
}

export function chooseRows(
  rowStates: readonly [Row, WaitingState][],
  request: LeaseRequest,
  now: number,
  isHeld: (row: Row) => boolean,
): Row[] {
  const { limit, runMax = 1, bytesMax = Infinity, suspects = false, retriesShare } = request;
  const wanted = suspects ? 'suspect' : 'ready';
  const due = rowStates.filter(([, state]) => state === wanted).map(([row]) => row);
  due.sort((a, b) => a.dueAt - b.dueAt || a.order - b.order);
  if (suspects) return due.slice(0, Math.min(1, limit));

  const heads = retriesShare === undefined ? due : withRetriesShare(due, limit, retriesShare);
  const chosen: Row[] = [];
  for (const head of heads) {
    if (chosen.length >= limit) break;
    chosen.push(...runOf(head, rowStates, Math.min(runMax, limit - chosen.length), now, isHeld));
  }
  return chosen.slice(0, countWithin(chosen, bytesMax));
}

/** Returns how many of the first rows fit into `bytesMax` payload bytes; at least 1. */
function countWithin(rows: readonly Row[], bytesMax: number): number {
  let bytes = 0;
  const tooMuch = rows.findIndex(({ envelope }, index) => {
    bytes += envelope.payload.length;
    return index > 0 && bytes > bytesMax;
  });
  return tooMuch < 0 ? rows.length : tooMuch;
}

function stateOf(row: Row, now: number, isBehind: boolean, isHeld: boolean): WaitingState {
  if (row.blocking) return 'blocking';
  if (row.lease) return 'leased';
  if (isBehind) return 'behind';
  if (isHeld) return 'held';
  if (row.suspect) return 'suspect';
  return row.dueAt > now ? 'delayed' : 'ready';
}

/**
 * Chooses events for a lease, and reserves `retriesShare` of `limit` for retries. Unused room goes to the
 * other kind.
 */
function withRetriesShare(due: readonly Row[], limit: number, retriesShare: number): Row[] {
  const retries = due.filter((row) => row.attempts > 0);
  const firstTries = due.filter((row) => row.attempts === 0);
  // A limit of 1 cannot be divided: the caller takes the event that was due first.
  if (limit === 1 || retries.length + firstTries.length <= limit) return [...due];
  const own = Math.min(limit - 1, Math.max(1, Math.floor(limit * retriesShare)));
  const retried = Math.min(retries.length, Math.max(own, limit - firstTries.length));
  const chosen = [...retries.slice(0, retried), ...firstTries.slice(0, limit - retried)];
  return chosen.sort((a, b) => a.dueAt - b.dueAt || a.order - b.order);
}

function runOf(
  head: Row,
  rowStates: readonly [Row, WaitingState][],
  runMax: number,
  now: number,
  isHeld: (row: Row) => boolean,
): Row[] {
  const run = [head];
  if (head.orderKey === undefined || runMax === 1) return run;
  for (const [row, state] of rowStates) {
    if (run.length >= runMax) break;
    if (row.orderKey !== head.orderKey || row === head) continue;
    // Stop here: later events of the key must not overtake this one.
    if (state !== 'behind' || row.suspect || row.dueAt > now || isHeld(row)) break;
    run.push(row);
  }
  return run;
}
