import type { Clock } from 'holdfast';
import type { Field } from 'holdfast/fields';
import type { Peers } from './address.ts';

/** Read in any case: requests have methods in capitals, and `'post'` must not leave them unprotected. */
export const methodField: Field<string, string> = {
  kind: 'a method such as "POST"',
  read: (value) => (typeof value === 'string' && /^[\w-]+$/.test(value) ? value.toUpperCase() : undefined),
};

/** Made by `peers()`; a plain list of networks is refused. */
export const peersField: Field<Peers, Peers> = objectWith('what peers("10.0.0.0/8") gives', 'has');

export const clockField: Field<Clock, Clock> = objectWith('a Clock', 'now');

/** An object that has the function `name`. */
export function objectWith<T>(kind: string, name: keyof T & string): Field<T, T> {
  return {
    kind,
    read: (value) => (typeof (value as Partial<T>)?.[name] === 'function' ? (value as T) : undefined),
  };
}
