import type { TopicControl } from '@holdfast/contracts';
import { type Flag, type Given, UsageError } from './command.ts';
import { textOf } from './given-values.ts';

/** `things` is a word for the help text: events or assemblies. */
export function whoseFlags(things: string): Readonly<Record<string, Flag>> {
  return {
    tenant: { value: 'tenant', says: `${things} of this tenant` },
    key: { value: 'key', says: `or ${things} with this key` },
  };
}

export function quarantineOf(topic: string, given: Given): TopicControl {
  const tenant = textOf(given, 'tenant');
  const key = textOf(given, 'key');
  if ((tenant === undefined) === (key === undefined)) throw new UsageError('say --tenant or --key.');
  return tenant === undefined
    ? { kind: 'quarantine', topic, key: key! }
    : { kind: 'quarantine', topic, tenant };
}
