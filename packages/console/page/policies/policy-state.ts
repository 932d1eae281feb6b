import type { AnswerOf } from '../../src/api/routes.ts';
import type { State } from '../parts/glyph.tsx';

export type PolicyState = AnswerOf<'GET /policies'>['items'][number];
export type Target = PolicyState['targets'][number];

export function breakerLook(breaker: string): { readonly state: State; readonly says: string } {
  if (breaker === 'open') return { state: 'refused', says: 'open' };
  if (breaker === 'half_open' || breaker === 'half-open') return { state: 'retrying', says: 'half-open' };
  return { state: 'ok', says: breaker };
}

/** Summarizes all circuit breakers of a policy: `2 open`, `1 half-open`, `closed`. */
export function breakersWord({ targets }: PolicyState): { readonly state: State; readonly says: string } {
  const looks = targets.flatMap(({ breaker }) => (breaker === undefined ? [] : [breakerLook(breaker)]));
  if (looks.length === 0) return { state: 'over', says: 'none' };
  for (const says of ['open', 'half-open']) {
    const found = looks.filter((look) => look.says === says);
    if (found[0]) return { state: found[0].state, says: `${found.length} ${says}` };
  }
  return { state: 'ok', says: 'closed' };
}

export function modeWord({ enforcedShare, killSwitch }: PolicyState): string {
  const retries = killSwitch ? ' · retries off' : '';
  if (enforcedShare === 1) return `enforce${retries}`;
  return `${enforcedShare === 0 ? 'observe' : `enforce ${Math.round(enforcedShare * 100)} %`}${retries}`;
}

/** The share of all operations that succeeded only because of a retry. */
export function successAfterRetry({ counters }: PolicyState): number {
  const operations = Number(counters.operations ?? 0);
  return operations > 0 ? Number(counters.succeededAfterRetry ?? 0) / operations : 0;
}

const reasons: Readonly<Record<string, string>> = {
  failure_ratio: 'too large a share of calls failed',
  consecutive: 'too many calls failed in a row',
  slow: 'too many calls were slow',
  probe_failed: 'the last probe failed',
  forced: 'somebody keeps it so',
};

export function becauseWords(because: string): string {
  return reasons[because] ?? because.replaceAll('_', ' ');
}
