import type { Pack } from '../outcome.ts';

/** Every error is transient unless it is marked otherwise: for operations that are known to be safe to repeat. */
export const any: Pack = {
  pack: 'any',
  classify: (outcome) => (outcome.ok ? undefined : 'transient'),
};
