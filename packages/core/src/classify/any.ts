import type { Pack } from '../decide/outcome.ts';

/**
 * A pack (a named classifier) that classifies every error as transient if no other pack has classified it.
 * Use it only for operations that are safe to repeat.
 */
export const any: Pack<'any'> = {
  pack: 'any',
  classify: (outcome) => (outcome.ok ? undefined : 'transient'),
};
