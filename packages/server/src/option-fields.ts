import type { Clock } from 'holdfast';
import type { Field } from 'holdfast/fields';
import type { Peers } from './address.ts';

/** Reads an HTTP method and converts it to upper case. Otherwise, `'post'` would match no request. */
export const methodField: Field<string, string> = {
  kind: 'a method such as "POST"',
  read: (value) => (typeof value === 'string' && /^[\w-]+$/.test(value) ? value.toUpperCase() : undefined),
};

/** Accepts only a result of `peers()`, not a plain list of networks. */
export const peersField: Field<Peers, Peers> = objectWith('what peers("10.0.0.0/8") gives', 'has');

export const clockField: Field<Clock, Clock> = objectWith('a Clock', 'now');

/** Returns a field that accepts an object with a function of the given name. */
export function objectWith<T>(kind: string, name: keyof T & string): Field<T, T> {
  return {
    kind,
    read: (value) => (typeof (value as Partial<T>)?.[name] === 'function' ? (value as T) : undefined),
  };
}
