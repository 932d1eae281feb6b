import type { Payload } from '@holdfast/contracts';
import { OptionsError } from 'holdfast';

/** Converts a value to the JSON text that is stored. `undefined` stays `undefined`, and nothing is stored. */
export function toStored(value: unknown, path: string): string | undefined {
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new OptionsError(path, String(error), 'a value that JSON can hold');
  }
  if (text === undefined) throw new OptionsError(path, typeof value, 'a value that JSON can hold');
  return text;
}

export function fromStored(payload: Payload | undefined): unknown {
  if (payload === undefined) return undefined;
  return typeof payload === 'string' ? JSON.parse(payload) : payload;
}
