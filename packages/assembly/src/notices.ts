import type { Journal, StoredAssembly, StoredStep } from '@holdfast/contracts';
import { type AssemblyStatus, statusOf } from './assembly-status.ts';
import type { Watcher } from './watcher.ts';

/** Something that a customer is told. Notices are made from the journal, so that nobody misses the latest. */
export interface Notice {
  /** Grows. Follow with `after` to go on where a connection was lost. */
  readonly number: number;
  readonly type: 'accepted' | 'step' | 'waiting' | 'problem' | 'done' | 'stopped';
  /** One sentence for people. */
  readonly text: string;
  readonly status: AssemblyStatus;
}

const pageMax = 1000;

/**
 * Gives what happens to an assembly, from the notice after `after` to its end. What happened between two looks at the journal
 * is told once.
 */
export async function* follow(
  id: string,
  { journal, watcher, after = -1, signal }: FollowOptions,
): AsyncGenerator<Notice, void, undefined> {
  let last = after;
  let ring: () => void = () => {};
  let isRung = true;
  const unwatch = watcher.watch(
    id,
    () => {
      isRung = true;
      ring();
    },
    true,
  );
  const onAbort = () => ring();
  signal?.addEventListener('abort', onAbort);
  try {
    while (!signal?.aborted) {
      if (!isRung)
        await new Promise<void>((resolve) => {
          ring = resolve;
        });
      if (signal?.aborted) return;
      isRung = false;
      const [stored] = await journal.get([id]);
      if (!stored) return;
      const steps = await allSteps(journal, id);
      const notice = noticeOf(stored, steps, await journal.now());
      if (last < 0 && notice.number > 0) yield { ...notice, number: 0, type: 'accepted', text: 'accepted' };
      if (notice.number > last) {
        last = notice.number;
        yield notice;
      }
      if (stored.state === 'done' || stored.state === 'stopped') return;
    }
  } finally {
    unwatch();
    signal?.removeEventListener('abort', onAbort);
  }
}

export interface FollowOptions {
  readonly journal: Journal;
  readonly watcher: Watcher;
  /** The number of the last notice that was seen. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export async function allSteps(journal: Journal, id: string): Promise<StoredStep[]> {
  const steps: StoredStep[] = [];
  let cursor: string | undefined;
  do {
    const page = await journal.steps(id, { limit: pageMax, ...(cursor !== undefined && { cursor }) });
    steps.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return steps;
}

function noticeOf(stored: StoredAssembly, steps: readonly StoredStep[], now: number): Notice {
  const status = statusOf(stored, steps, now);
  // A record raises the number by its order; what can follow without another record has a rank of its own.
  const lastOrder = steps.reduce((last, { order }) => Math.max(last, order), 0);
  const type = typeOf(status.state, steps.length);
  return {
    number: 4 * lastOrder + ranks.indexOf(type) + 1,
    type,
    text: type === 'accepted' ? 'accepted' : status.text,
    status,
  };
}

const ranks: readonly Notice['type'][] = ['problem', 'done', 'stopped'];

function typeOf(state: AssemblyStatus['state'], steps: number): Notice['type'] {
  if (state === 'done' || state === 'stopped') return state;
  if (state === 'parked') return 'problem';
  if (steps === 0) return 'accepted';
  return state === 'waiting' || state === 'back-order' ? 'waiting' : 'step';
}
