import type { ParkedFilter, ParkedStatus } from '@holdfast/contracts';
import { type Flag, type Given, UsageError } from './command.ts';
import { momentOf, textOf } from './given-values.ts';

/** Flags that filter parked events, which are events that were set aside after their attempts had failed. */
export const filterFlags: Readonly<Record<string, Flag>> = {
  topic: { value: 'name', says: 'of this topic' },
  type: { value: 'type', says: 'of this type of event' },
  key: { value: 'key', says: 'with this key' },
  tenant: { value: 'tenant', says: 'of this tenant' },
  reason: { value: 'type', says: 'whose error is of this type' },
  stop: { value: 'reason', says: 'that stopped for this reason: attempts_exhausted, poison, …' },
  group: { value: 'fingerprint', says: 'of this group (see "holdfast dlq groups")' },
  text: { value: 'text', says: 'with this in message, key or payload' },
  since: { value: 'date or age', says: 'parked since: 2026-01-31, or 2h' },
  until: { value: 'date or age', says: 'parked before' },
};

const statuses: readonly ParkedStatus[] = ['parked', 'replaying', 'resolved', 'discarded'];

export const statusFlag: Readonly<Record<'status', Flag>> = {
  status: { value: 'status', says: `${statuses.join(', ')}; parked unless given` },
};

export function filterOf(given: Given): ParkedFilter {
  const fingerprint = textOf(given, 'group');
  const from = momentOf(given, 'since');
  const to = momentOf(given, 'until');
  const status = textOf(given, 'status') as ParkedStatus | undefined;
  if (status !== undefined && !statuses.includes(status)) {
    throw new UsageError(`--status: expected one of ${statuses.join(', ')}, got "${status}".`);
  }
  const texts = ['topic', 'type', 'key', 'tenant', 'reason', 'stop', 'text'].map((name) => [
    name,
    textOf(given, name),
  ]);
  return Object.fromEntries(
    Object.entries({ ...Object.fromEntries(texts), fingerprint, from, to, status }).filter(
      ([, value]) => value !== undefined,
    ),
  );
}
