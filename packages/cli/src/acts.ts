import type { Act } from '@holdfast/contracts';
import { type Flag, type Given, UsageError } from './command.ts';
import { textOf } from './given-values.ts';
import type { Terminal } from './terminal.ts';

/**
 * The audit log gets this reason if the user gives none. Only commands that delete or stop nothing may use
 * it.
 */
export const byHand = 'by hand';

export const actFlags: Readonly<Record<'why' | 'who', Flag>> = {
  why: { value: 'text', says: 'the reason; kept in the audit log (needed)' },
  who: { value: 'name', says: 'kept in the audit log; your user name unless given' },
};

/** Flags of commands that delete or stop nothing. For these, the reason is optional. */
export const harmlessActFlags: typeof actFlags = {
  ...actFlags,
  why: { value: 'text', says: `the reason; kept in the audit log; "${byHand}" unless given` },
};

/** Throws a `UsageError` if a reason is needed and not given. */
export function actOf(given: Given, terminal: Terminal, otherwise?: typeof byHand): Act {
  const why = textOf(given, 'why') ?? otherwise;
  if (why === undefined || why.trim() === '')
    throw new UsageError('--why is needed: it is kept in the audit log.');
  return { who: textOf(given, 'who') ?? terminal.user, why };
}
