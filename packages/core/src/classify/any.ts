import type { Pack } from '../decide/outcome.ts';

/**
 * A pack (a named classifier) that classifies every remaining error as transient. Use it only for operations that are
 * safe to repeat.
 */
export const any: Pack<'any'> = {
  pack: 'any',
  classify: (outcome) => (outcome.ok ? undefined : 'transient'),
};
