import type { Journal, StoredAssembly, StoredStep } from '@holdfast/contracts';
import { type AssemblyStatus, statusOf } from './assembly-status.ts';
import type { Waits } from './waits.ts';
import type { Watcher } from './watcher.ts';

/**
 * A change of an assembly that is reported to the customer. Notices are computed from the journal. So after a
 * lost connection, `follow` yields at least the latest notice.
 */
export interface Notice {
  /** Grows with each notice. After a lost connection, pass the last number as `after` to continue. */
  readonly number: number;
  readonly type: 'accepted' | 'step' | 'waiting' | 'problem' | 'done' | 'stopped';
  /** One sentence for the customer. */
  readonly text: string;
  readonly status: AssemblyStatus;
}

const pageMax = 1000;

/**
 * Yields the notices of an assembly after the number `after`, until the assembly ends or the process is
 * stopped. If several changes happen between two reads of the journal, only the latest is yielded.
 */
export async function* follow(
  id: string,
  { journal, watcher, waits, after = -1, signal }: FollowOptions,
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
  const forget = waits.add(onAbort);
  signal?.addEventListener('abort', onAbort);
  try {
    while (!signal?.aborted) {
      if (!isRung && waits.areOver) return;
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
    forget();
    signal?.removeEventListener('abort', onAbort);
  }
}

export interface FollowOptions {
  readonly journal: Journal;
  readonly watcher: Watcher;
  readonly waits: Waits;
  /** The number of the last notice that the caller has received. */
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
  // A notice of the type `problem`, `done` or `stopped` can follow without a new record. So the rank of the
  // type is part of the number.
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
