import {
  type Act,
  type ActiveControl,
  type AuditEntry,
  type Engine,
  type Subject,
  TriageError,
  type TriageRule,
} from '@holdfast/contracts';
import { OptionsError, systemClock } from 'holdfast';
import { operations } from './operation-runner.ts';

type UndoEngine = Pick<Engine, 'audit' | 'triage' | 'controls' | 'broker'>;

/**
 * How each kind of act (a change by an operator) is undone. A kind that is not in this table cannot be
 * undone.
 */
const inverses: Readonly<
  Record<string, (engine: UndoEngine, entry: AuditEntry, act: Act) => Promise<number>>
> = {
  discard: undoOperation,
  restore: undoOperation,
  keep: undoOperation,
  control_set: putControlBack,
  control_removed: putControlBack,
  rule_set: putRuleBack,
  rule_removed: putRuleBack,
};

/** True: the act can be undone, and was not undone before. */
export function canUndo({ what, undoneBy }: AuditEntry): boolean {
  return undoneBy === undefined && Object.hasOwn(inverses, what);
}

/**
 * Undoes an act of the audit log. Resolves with how many events, controls or rules it has changed. For a
 * discard, restore or keep, it resolves after all events are changed back. Rejects with a `TriageError` if
 * the act cannot be undone or was undone before.
 */
export async function undo(engine: UndoEngine, id: string, act: Act): Promise<number> {
  if (!engine.audit) throw new OptionsError('engine.audit', engine.audit, 'an engine with an audit log');
  const entry = await engine.audit.get(id);
  if (!entry) throw new OptionsError('id', id, 'the id of an audit entry');
  const inverse = Object.hasOwn(inverses, entry.what) ? inverses[entry.what] : undefined;
  if (!inverse) throw new TriageError('NOT_UNDOABLE', `${entry.what} cannot be undone`);
  return inverse(engine, entry, { ...act, undoes: id });
}

async function undoOperation(engine: UndoEngine, { subjects }: AuditEntry, act: Act): Promise<number> {
  const runner = operations({ engine });
  const of = nameOf(subjects, 'operation');
  const undone = await engine.triage?.operations.get(of);
  const request = { kind: 'undo', of, ...(undone && { expected: undone.counts.changed }) } as const;
  const { id } = await runner.begin(request, act);
  return (await runner.run(id)).counts.changed;
}

/**
 * Restores the control that was active before the act. The restored control ends at the time at which it
 * would have ended without the act. If no control was active, removes the control that the act has set.
 */
async function putControlBack({ audit, controls }: UndoEngine, entry: AuditEntry, act: Act): Promise<number> {
  if (!controls) throw new OptionsError('engine.controls', controls, 'an engine with controls');
  const before = entry.before as ActiveControl | undefined;
  const id = nameOf(entry.subjects, 'control');
  await assertLatest(audit, entry, `control:${id}`);
  const isActive = (await controls.active()).controls.some((control) => control.id === id);
  if (isActive !== (entry.what === 'control_set'))
    throw new TriageError('NOT_UNDOABLE', `control ${id} has ended by itself: there is nothing to undo`);
  if (!before) {
    await controls.lift(id, act);
    return 1;
  }
  const leftMs = before.until === undefined ? undefined : before.until - systemClock.epochMs();
  if (leftMs !== undefined && leftMs <= 0)
    throw new TriageError('NOT_UNDOABLE', `the time of control ${before.id} is over`);
  await controls.impose(before.control, act, leftMs);
  return 1;
}

async function putRuleBack({ audit, triage }: UndoEngine, entry: AuditEntry, act: Act): Promise<number> {
  if (!triage) throw new OptionsError('engine.triage', triage, 'an engine with a triage');
  await assertLatest(audit, entry, `rule:${nameOf(entry.subjects, 'rule')}`);
  const before = entry.before as TriageRule | undefined;
  if (before) await triage.setRule(before, act);
  else await triage.removeRule(nameOf(entry.subjects, 'rule'), act);
  return 1;
}

/**
 * Throws if the control or rule was changed again after this act. An undo would then also undo the later
 * change.
 */
async function assertLatest(audit: Engine['audit'], { id }: AuditEntry, subject: Subject): Promise<void> {
  const [latest] = (await audit!.list({ subject }, { limit: 1 })).items;
  if (latest?.id !== id)
    throw new TriageError('NOT_UNDOABLE', `${subject} has changed since: set or remove it by hand`);
}

function nameOf(subjects: readonly Subject[], kind: string): string {
  const found = subjects.find((subject) => subject.startsWith(`${kind}:`));
  return found?.slice(kind.length + 1) ?? '';
}
