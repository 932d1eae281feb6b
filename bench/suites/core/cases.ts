import type { Case } from '../../harness.ts';

type Cases = Readonly<Record<string, () => Promise<Case>>>;

/**
 * A process that measures a case loads its peers and its policies, and no others: those would be in the profile by which the
 * engine compiles what is measured.
 */
export const timed: Cases = {
  'policy()': async () => (await import('./default-policy.ts')).defaultPolicy,
  'retry success': async () => (await import('./retry.ts')).retrySuccess,
  'retry with patience': async () => (await import('./retry.ts')).retryWithPatience,
  'three failures, no delay': async () => (await import('./three-failures.ts')).threeFailures,
  'breaker success': async () => (await import('./breaker.ts')).breakerSuccess,
  'breaker open, try': async () => (await import('./open-breaker.ts')).breakerOpenTry,
  'breaker open': async () => (await import('./open-breaker.ts')).breakerOpen,
  'pipeline success': async () => (await import('./pipeline.ts')).pipelineSuccess,
};

export const weighed: Cases = {
  'pipeline bytes': async () => (await import('./pipeline.ts')).pipelineBytes,
};
