import type { Subject } from '@holdfast/contracts';
import type { Given } from './command.ts';
import type { OpenStore } from './store.ts';
import { withCommand } from './suggested-command.ts';
import type { Terminal } from './terminal.ts';

/** Prints the command that undoes the latest change of a control (such as a pause) or a rule. */
export async function printUndo(
  { audit }: OpenStore,
  subject: Subject,
  given: Given,
  terminal: Terminal,
): Promise<void> {
  const [latest] = (await audit.list({ subject }, { limit: 1 })).items;
  if (!latest) return;
  terminal.out(withCommand('Undo it with', `audit --undo ${latest.id} --why …`, given, terminal));
}
