import { clampMs, type Delivery, type Leased, type LeaseRequest } from '@holdfast/contracts';
import type { Row } from './database.ts';
import { envelopeOf, numberOf } from './envelope-columns.ts';

export const leaseText = `SELECT token, seq, id, body, bytes, bytes_are_text, type, key, tenant, extras, origin, replay,
  first_seen_at, expires_at, patience_left, trials FROM {schema}.lease($1, $2, $3, $4, $5, $6, $7, $8, $9)`;

const envelopeFrom = 2;

/**
 * Returns the arguments of the SQL function `lease`. It reads events that are due at `scanStart` (epoch ms)
 * or later.
 */
export function leaseValues(topic: string, request: LeaseRequest, scanStart: number): unknown[] {
  const { owner, limit, leaseMs, runMax = 1, retriesShare = null, suspects = false, bytesMax } = request;
  const bytes = bytesMax === undefined ? null : Math.floor(bytesMax);
  return [topic, owner, limit, clampMs(leaseMs), runMax, retriesShare, suspects, scanStart, bytes];
}

/** Reads the result of `leaseText`. The first row is a summary in JSON, and each other row is an event. */
export function leasedOf(
  topic: string,
  [head, ...rows]: readonly Row[],
): Leased & { readonly firstDueAt: number | null } {
  const [suspects, nextDueInMs, controlsVersion, firstDueAt] = JSON.parse(head![9] as string) as LeaseSummary;
  return {
    deliveries: rows.map((row) => deliveryOf(topic, row)),
    suspects,
    nextDueInMs: nextDueInMs ?? undefined,
    controlsVersion,
    firstDueAt,
  };
}

type LeaseSummary = [
  suspects: number,
  nextDueInMs: number | null,
  controlsVersion: number,
  firstDueAt: number | null,
];

type TrialColumns = [
  attempts: number,
  snoozes: number,
  deaths: number,
  suspect: boolean,
  nextDelayMs: number | null,
  lastError: Delivery['lastError'] | null,
  story: Delivery['story'] | null,
];

const untried: TrialColumns = [0, 0, 0, false, null, null, null];

function deliveryOf(topic: string, row: Row): Delivery {
  const envelope = envelopeOf(row, topic, envelopeFrom);
  const [attempts, snoozes, deaths, suspect, nextDelayMs, lastError, story]: TrialColumns =
    row[15] === null ? untried : JSON.parse(row[15] as string);
  return {
    ...envelope,
    attempts,
    snoozes,
    deaths,
    nextDelayMs: nextDelayMs ?? undefined,
    lastError: lastError ?? undefined,
    story: story ?? [],
    lease: { topic, id: envelope.id, token: `${row[0]}.${row[1]}` },
    attempt: attempts + 1,
    patienceLeftMs: numberOf(row[14]) ?? Infinity,
    suspect,
    diagnosis: undefined,
  };
}
