import type { EventCase } from './event-case.ts';

export interface EngineCases {
  readonly cases: readonly EventCase[];
  /** Why it cannot be measured here; then it has no cases. */
  readonly missing: string | undefined;
}

/** One file an engine, loaded where it is measured. */
export const engines: Readonly<Record<string, () => Promise<EngineCases>>> = {
  sqlite: async () => ({ cases: (await import('./sqlite.ts')).sqliteCases, missing: undefined }),
  postgres: async () => (await import('./postgres.ts')).postgresCases(),
};
