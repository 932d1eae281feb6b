import type { Subject } from '@holdfast/contracts';
import type { OpenStore } from './store.ts';
import type { Terminal } from './terminal.ts';
import { wrapText } from './text-width.ts';

/** Prints the command that undoes the latest change of a control or a rule. */
export async function printUndo({ audit }: OpenStore, subject: Subject, terminal: Terminal): Promise<void> {
  const [latest] = (await audit.list({ subject }, { limit: 1 })).items;
  if (!latest) return;
  terminal.out(wrapText(`Undo it with "holdfast audit --undo ${latest.id} --why …".`, terminal.columns));
}
