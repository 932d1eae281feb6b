import { HoldfastError } from 'holdfast';
import { z } from 'zod';
import { Problem, type ProblemKind } from './problem.ts';

const kindsOfCodes: Readonly<Record<string, ProblemKind>> = {
  HOLDFAST_OPTIONS: 'bad-question',
  HOLDFAST_TOPIC: 'unknown',
  HOLDFAST_TOO_LARGE: 'too-large',
  HOLDFAST_FEATURE_MISSING: 'feature-missing',
  HOLDFAST_TRIAGE_EMPTY_FILTER: 'empty-filter',
  HOLDFAST_TRIAGE_NO_REASON: 'no-reason',
  HOLDFAST_TRIAGE_BUSY: 'busy',
  HOLDFAST_TRIAGE_CHANGED: 'changed',
  HOLDFAST_TRIAGE_NOT_UNDOABLE: 'does-not-fit',
  HOLDFAST_ENGINE_FULL: 'store-away',
  HOLDFAST_ASSEMBLY_UNKNOWN: 'unknown',
  HOLDFAST_ASSEMBLY_STATE: 'does-not-fit',
};

/** The response to an unexpected error contains no internal details. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof z.ZodError) return badQuestion(error);
  if (error instanceof HoldfastError) {
    const { code } = error;
    const isAway = /^HOLDFAST_(SQLITE|POSTGRES)_/.test(code);
    const kind = kindsOfCodes[code] ?? (isAway ? 'store-away' : 'does-not-fit');
    return new Problem(kind, sentence(error.message), { code }, kind === 'store-away' ? 2 : undefined);
  }
  return new Problem('failed', 'The console has failed; its log says why.');
}

function badQuestion({ issues }: z.ZodError): Problem {
  const all = issues.map(({ path, message, code, ...rest }) => {
    const keys = code === 'unrecognized_keys' ? (rest as { keys?: readonly string[] }).keys : undefined;
    const at = [...path, ...(keys?.slice(0, 1) ?? [])].map(String).join('.');
    return { path: at, message: keys ? `is not known here` : message };
  });
  const [first] = all;
  const isReason = first?.path === 'why';
  const says = sentence(`${first?.path || 'the question'}: ${first?.message ?? 'it is not understood'}`);
  return new Problem(isReason ? 'no-reason' : 'bad-question', says, { issues: all });
}

function sentence(text: string): string {
  const started = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(started) ? started : `${started}.`;
}
