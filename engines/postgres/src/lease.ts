import type { Delivery, Leased, LeaseRequest } from '@holdfast/contracts';
import type { Row } from './database.ts';
import { envelopeOf, numberOf } from './envelope-columns.ts';

export const leaseText = `SELECT token, seq, id, body, bytes, bytes_are_text, type, key, tenant, extras, origin, replay,
  first_seen_at, expires_at, patience_left, trials FROM {schema}.lease($1, $2, $3, $4, $5, $6, $7)`;

/** Where the columns of an envelope begin. */
const envelopeFrom = 2;

export function leaseValues(topic: string, request: LeaseRequest): unknown[] {
  const { owner, limit, leaseMs, runMax = 1, retriesShare = null, suspects = false } = request;
  return [topic, owner, limit, leaseMs, runMax, retriesShare, suspects];
}

export function leasedOf(topic: string, [head, ...rows]: readonly Row[]): Leased {
  const [suspects, nextDueInMs, controlsVersion] = JSON.parse(head![9] as string) as [
    number,
    number | null,
    number,
  ];
  return {
    deliveries: rows.map((row) => deliveryOf(topic, row)),
    suspects,
    nextDueInMs: nextDueInMs ?? undefined,
    controlsVersion,
  };
}

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
