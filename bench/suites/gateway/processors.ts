import { availableParallelism } from 'node:os';
import { findPrograms } from '../../../scripts/services/programs.ts';

const found = findPrograms(['taskset']);

/** Words before a command that put it on one processor; none where the machine has one, or cannot do that. */
export function coreWords(core: number): string[] {
  if (found.missing !== undefined || availableParallelism() < 2) return [];
  return [found.programs.taskset!, '--cpu-list', String(core)];
}
