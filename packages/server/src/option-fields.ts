import type { Field } from 'holdfast/fields';
import type { Peers } from './address.ts';

/** In any case: requests have it in capitals, and one that is never met would be left unprotected. */
export const method: Field<string, string> = {
  kind: 'a method such as "POST"',
  read: (value) => (typeof value === 'string' && /^[\w-]+$/.test(value) ? value.toUpperCase() : undefined),
};

/** Whom to believe. A list of networks is none yet. */
export const trusted: Field<Peers, Peers> = able('what peers("10.0.0.0/8") gives', 'has');

/** Something that has the function `named`. */
export function able<T>(kind: string, named: keyof T & string): Field<T, T> {
  return {
    kind,
    read: (value) => (typeof (value as Partial<T>)?.[named] === 'function' ? (value as T) : undefined),
  };
}
