import type { Act } from './controls.ts';
import type { ActNote, AssemblyChange } from './journal.ts';

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
