import { METHODS } from 'node:http';
import { type Clock, OptionsError } from 'holdfast';
import { type Field, isDocument, nearest, readTable, type SettingsOf, type Table } from 'holdfast/fields';
import type { Peers } from './address.ts';

/**
 * Reads the options of a function. `example` shows options that work. `peerWords` has names that other
 * libraries use for an option, each with our name.
 */
export function readOptions<T extends Table>(
  fields: T,
  options: object,
  name: string,
  example: string,
  peerWords: Readonly<Record<string, string>> = {},
): SettingsOf<T> {
  if (!isDocument(options)) throw new OptionsError(name, options, `options such as ${example}`);
  for (const [key, value] of Object.entries(options)) {
    if (Object.hasOwn(fields, key) || !Object.hasOwn(peerWords, key)) continue;
    throw new OptionsError(`${name}.${key}`, value, Object.keys(fields).join(', '), peerWords[key], true);
  }
  return readTable(fields, options, `${name}.`);
}

/** Converts a method to upper case. Otherwise, `'post'` would match no request. */
export const methodField: Field<string, string> = {
  kind: 'a method such as "POST"',
  read(value, path) {
    if (typeof value !== 'string') return undefined;
    const method = value.toUpperCase();
    // Node refuses a request with any other method, so a misspelt one would match no request.
    if (METHODS.includes(method)) return method;
    throw new OptionsError(path, value, methodField.kind, nearest(method, METHODS));
  },
};

export const peersField: Field<Peers, Peers> = objectWith('what peers("10.0.0.0/8") gives', 'has');

export const clockField: Field<Clock, Clock> = objectWith('a Clock', 'now');

/** A field for an object with the method `name`. An engine has this object as its property `ofEngine`. */
export function objectWith<T>(kind: string, name: keyof T & string, ofEngine?: string): Field<T, T> {
  const isIt = (value: unknown): value is T => typeof (value as Partial<T>)?.[name] === 'function';
  return {
    kind,
    read(value, path) {
      if (isIt(value)) return value;
      // The text of an engine says nothing to the reader, so it is not shown.
      if (ofEngine && isIt((value as Record<string, unknown>)?.[ofEngine]))
        throw new OptionsError(path, 'an engine', kind, `its .${ofEngine}`);
      return undefined;
    },
  };
}
