import type { LeaseRequest, WaitingState } from '../broker.ts';
import type { Row, Topic } from './storage.ts';

/** Every unsettled event of a topic with where it stands, in the order of publication. */
export function survey(topic: Topic, now: number, isHeld: (row: Row) => boolean): [Row, WaitingState][] {
  const lanes = new Set<string>();
  return [...topic.rows.values()].map((row) => {
    const isBehind = row.lane !== undefined && lanes.has(row.lane);
    if (row.lane !== undefined) lanes.add(row.lane);
    return [row, stateOf(row, now, isBehind, isHeld(row))];
  });
}

/** What a lease takes of a surveyed topic: nothing that is behind, but for the run of a head that is taken. */
export function choose(
  surveyed: readonly [Row, WaitingState][],
  request: LeaseRequest,
  now: number,
  isHeld: (row: Row) => boolean,
): Row[] {
  const { limit, runMax = 1, bytesMax = Infinity, suspects = false, retriesShare } = request;
  const wanted = suspects ? 'suspect' : 'ready';
  const line = surveyed.filter(([, state]) => state === wanted).map(([row]) => row);
  line.sort((a, b) => a.dueAt - b.dueAt || a.order - b.order);
  if (suspects) return line.slice(0, Math.min(1, limit));

  const heads = retriesShare === undefined ? line : shared(line, limit, retriesShare);
  const chosen: Row[] = [];
  for (const head of heads) {
    if (chosen.length >= limit) break;
    chosen.push(...runOf(head, surveyed, Math.min(runMax, limit - chosen.length), now, isHeld));
  }
  return chosen.slice(0, fitting(chosen, bytesMax));
}

/** How many have room together; one always has. */
function fitting(rows: readonly Row[], bytesMax: number): number {
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

/** Retries and first tries each have their part of `limit`, and what the other leaves free. */
function shared(line: readonly Row[], limit: number, retriesShare: number): Row[] {
  const retries = line.filter((row) => row.attempts > 0);
  const firstTries = line.filter((row) => row.attempts === 0);
  // One place cannot be shared: it goes to the oldest.
  if (limit === 1 || retries.length + firstTries.length <= limit) return [...line];
  const own = Math.min(limit - 1, Math.max(1, Math.floor(limit * retriesShare)));
  const retried = Math.min(retries.length, Math.max(own, limit - firstTries.length));
  const chosen = [...retries.slice(0, retried), ...firstTries.slice(0, limit - retried)];
  return chosen.sort((a, b) => a.dueAt - b.dueAt || a.order - b.order);
}

function runOf(
  head: Row,
  surveyed: readonly [Row, WaitingState][],
  runMax: number,
  now: number,
  isHeld: (row: Row) => boolean,
): Row[] {
  const run = [head];
  if (head.lane === undefined || runMax === 1) return run;
  for (const [row, state] of surveyed) {
    if (run.length >= runMax) break;
    if (row.lane !== head.lane || row === head) continue;
    // The first that cannot run ends it: what is after it may not overtake.
    if (state !== 'behind' || row.suspect || row.dueAt > now || isHeld(row)) break;
    run.push(row);
  }
  return run;
}
