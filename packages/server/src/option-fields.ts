import type { Clock } from 'holdfast';
import type { Field } from 'holdfast/fields';
import type { Peers } from './address.ts';

/** Converts a method to upper case. Otherwise, `'post'` would match no request. */
export const methodField: Field<string, string> = {
  kind: 'a method such as "POST"',
  read: (value) => (typeof value === 'string' && /^[\w-]+$/.test(value) ? value.toUpperCase() : undefined),
};

export const peersField: Field<Peers, Peers> = objectWith('what peers("10.0.0.0/8") gives', 'has');

export const clockField: Field<Clock, Clock> = objectWith('a Clock', 'now');

export function objectWith<T>(kind: string, name: keyof T & string): Field<T, T> {
  return {
    kind,
    read: (value) => (typeof (value as Partial<T>)?.[name] === 'function' ? (value as T) : undefined),
  };
}
