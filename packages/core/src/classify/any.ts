import type { Pack } from '../decide/outcome.ts';

/**
 * Makes every error transient that no other pack knows, unless it is marked otherwise: for operations that are known to be
 * safe to repeat. It is always the last pack.
 */
export const any: Pack<'any'> = {
  pack: 'any',
  classify: (outcome) => (outcome.ok ? undefined : 'transient'),
};
