import type { AnswerOf } from '../../src/api/routes.ts';
import type { State } from '../parts/glyph.tsx';

export type AssemblySummary = AnswerOf<'GET /assemblies'>['items'][number];
export type AssemblyStep = AnswerOf<'GET /assemblies/:id'>['steps'][number];

export const assemblyLooks: Readonly<Record<AssemblySummary['state'], State>> = {
  waiting: 'waiting',
  running: 'ok',
  parked: 'parked',
  done: 'ok',
  stopped: 'over',
};

const stepLooks: Readonly<Record<string, State>> = {
  done: 'ok',
  failed: 'parked',
  begun: 'retrying',
  retrying: 'retrying',
  waiting: 'waiting',
};

export function stepLook({ state, kind }: AssemblyStep): State {
  return kind === 'undo' && state === 'done' ? 'over' : (stepLooks[state] ?? 'waiting');
}
