import { type NewAuditEntry, subject } from './audit.ts';
import type { Act } from './controls.ts';
import type { ActNote, AssemblyChange, NewSignal, StopRequest } from './journal.ts';

/** Describes a change that a person made, in a few words, for `ActNote.what`. */
export function whatChanged({
  input,
  version,
  settings,
  put = [],
  forget = [],
  resume,
}: AssemblyChange): string {
  const parts = [
    input !== undefined && 'input',
    version !== undefined && `version ${version}`,
    settings !== undefined && 'settings',
    ...put.map(({ path }) => `result of ${path}`),
    ...forget.map((path) => `forgot ${path}`),
    resume && 'resumed',
  ];
  return parts.filter((part) => part !== false && part !== undefined).join(', ') || 'nothing';
}

/**
 * Returns the first note of a forked assembly (a copy of work in several steps). The note names the assembly
 * that was copied.
 */
export function forkNote(act: Act, from: string, now: number): ActNote {
  return { ...act, at: now, what: `forked from ${from}` };
}

/** Returns the audit entry of a change of an assembly (work in several steps) by a person. */
export function changeEntry(id: string, { resume }: AssemblyChange, act: Act): NewAuditEntry {
  return { ...act, what: resume ? 'assembly_resume' : 'assembly_edit', subjects: [subject('assembly', id)] };
}

/** Returns the audit entry of a fork. Its subjects are the copied assembly (work in several steps) and the copy. */
export function forkEntry(id: string, copy: string, act: Act): NewAuditEntry {
  const subjects = [subject('assembly', id), subject('assembly', copy)];
  return { ...act, what: 'assembly_fork', subjects, count: 1 };
}

/**
 * Returns the audit entry of a stop request. `undefined`: the request names no person, or gives no reason. It
 * was made by a program, so it is not audited.
 */
export function stopEntry({ id, stop: { who = '', message } }: StopRequest): NewAuditEntry | undefined {
  if (who.trim() === '' || message.trim() === '') return undefined;
  return { who, why: message, what: 'assembly_cancel', subjects: [subject('assembly', id)] };
}

/** Returns the audit entry of a signal; `undefined`: no operator has sent it, so it is not audited. */
export function signalEntry({ to, act }: NewSignal): NewAuditEntry | undefined {
  if (!act) return undefined;
  const { who, why } = act;
  return { who, why, what: 'assembly_signal', subjects: [subject('assembly', to)] };
}
