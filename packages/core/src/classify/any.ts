import type { Pack } from '../decide/outcome.ts';

/**
 * Classifies every error as transient that no other pack knows, unless the error was marked with `permanent` or
 * `retryAfter`. Use it for operations that are safe to repeat. It is always the last pack.
 */
export const any: Pack<'any'> = {
  pack: 'any',
  classify: (outcome) => (outcome.ok ? undefined : 'transient'),
};
