import type { Story } from 'holdfast';
import { tellStory } from 'holdfast/explain';
import type { ProxiedRequest } from '../proxy/proxied-request.ts';
import { type AccessRecord, outcomeName } from './access-record.ts';

/** The story of a request: why it was retried, rejected or answered with an error. */
export interface RequestStory extends AccessRecord {
  /** The whole story as text. */
  readonly says: string;
  readonly log: readonly {
    readonly attempt: number;
    readonly instance: string | null;
    readonly endedAtMs: number;
    readonly class: string;
    readonly outcome: string;
    readonly verdict: string;
    readonly because: string | null;
    readonly delayMs: number | null;
  }[];
}

/**
 * The latest stories (records of requests that failed or were retried). Their number is limited to bound the
 * memory.
 */
export class Stories {
  readonly #max: number;
  readonly #stories = new Map<string, RequestStory>();

  constructor(max: number) {
    this.#max = max;
  }

  add(record: AccessRecord, proxied: ProxiedRequest): void {
    const work = proxied.machine;
    if (!work || this.#max === 0) return;
    const { story } = work;
    this.#stories.delete(record.id);
    this.#stories.set(record.id, { ...record, says: tellStory(story), log: logOf(story) });
    if (this.#stories.size > this.#max) this.#stories.delete(this.#stories.keys().next().value!);
  }

  of(id: string): RequestStory | undefined {
    return this.#stories.get(id);
  }

  latest(count: number): RequestStory[] {
    return [...this.#stories.values()].slice(-count).reverse();
  }
}

function logOf({ log }: Story): RequestStory['log'] {
  return log.map(({ attempt, target, endedAtMs, class: judged, outcome, verdict }) => ({
    attempt,
    instance: target ?? null,
    endedAtMs: Math.round(endedAtMs * 10) / 10,
    class: judged,
    outcome: outcomeName(outcome),
    verdict: verdict.kind,
    because: 'because' in verdict ? verdict.because : null,
    delayMs: 'delayMs' in verdict ? verdict.delayMs : null,
  }));
}
