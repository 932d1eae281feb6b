import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { bulkhead } from './patterns/bulkhead.ts';
import { circuitBreaker } from './patterns/circuit-breaker.ts';
import { deadLetter } from './patterns/dead-letter.ts';
import { eventRetry } from './patterns/event-retry.ts';
import { gracefulDegradation } from './patterns/graceful-degradation.ts';
import { idempotentApi } from './patterns/idempotent-api.ts';
import { jitter } from './patterns/jitter.ts';
import { packagingOrAssembly } from './patterns/packaging-or-assembly.ts';
import { patternIndex } from './patterns/pattern-index.ts';
import { type PatternRun, rendered, withText } from './patterns/pattern-run.ts';
import { rateLimiting } from './patterns/rate-limiting.ts';
import { retryWithBackoff } from './patterns/retry-with-backoff.ts';
import { timeoutsAndDeadlines } from './patterns/timeouts-and-deadlines.ts';

const docs = path.join(import.meta.dirname, '../docs');

/** The runs behind each page of `docs/patterns`. All are seeded: the same code gives the same plots and figures. */
export const patternRuns: Readonly<Record<string, () => PatternRun | Promise<PatternRun>>> = {
  'retry-with-backoff': retryWithBackoff,
  jitter,
  'timeouts-and-deadlines': timeoutsAndDeadlines,
  'circuit-breaker': circuitBreaker,
  bulkhead,
  'rate-limiting': rateLimiting,
  'idempotent-api': idempotentApi,
  'event-retry': eventRetry,
  'dead-letter': deadLetter,
  'graceful-degradation': gracefulDegradation,
  'packaging-or-assembly': packagingOrAssembly,
};

/** Draws the plots of all patterns anew, and writes the figures of the same runs into their pages. */
export async function drill(): Promise<Record<string, number>> {
  const folder = path.join(docs, 'plots/patterns');
  await mkdir(folder, { recursive: true });
  const runs = new Map<string, PatternRun>();
  let plots = 0;
  for (const [name, run] of Object.entries(patternRuns)) {
    const its = await run();
    runs.set(name, its);
    for (const [file, svg] of Object.entries(its.plots)) {
      await writeFile(path.join(folder, `${file}.svg`), svg);
      plots++;
    }
    await writeFigures(`${name}.md`, its);
  }
  await writeFigures('README.md', patternIndex(runs));
  return { plots };
}

async function writeFigures(file: string, run: PatternRun): Promise<void> {
  const page = path.join(docs, 'patterns', file);
  let text = await readFile(page, 'utf8');
  for (const [mark, said] of Object.entries(rendered(run))) text = withText(text, mark, said);
  await writeFile(page, text);
}
