import { EngineFullError } from '../contract-errors.ts';
import type { Payload } from '../envelope.ts';
import type { Begun, Claim, Completion, Hold, Ledger, ProcessedMark } from '../ledger.ts';
import { commitFailed, LEASE_LOST, type SettlementResult, TOOK } from '../settlement-result.ts';
import type { SharedState } from './shared-state.ts';
import { beginTransaction, type KeyEntry, type MemoryStorage, type MemoryTransaction } from './storage.ts';

const dayMs = 24 * 60 * 60 * 1000;

export function memoryLedger(shared: SharedState): Ledger<MemoryTransaction> {
  const { storage } = shared;

  function held({ scope, key, token }: Hold, now: number): KeyEntry | undefined {
    const entry = storage.keys.get(scope, key);
    return entry && !entry.done && entry.token === token && entry.leaseEndsAt > now ? entry : undefined;
  }

  function completeOne(
    completion: Completion<MemoryTransaction>,
  ): SettlementResult | Promise<SettlementResult> {
    if (completion.commit) return commitOne(completion, completion.commit);
    const { hold, keepMs, record } = completion;
    return shared.write((now) => {
      const entry = held(hold, now);
      if (!entry) return LEASE_LOST;
      entry.done = true;
      entry.record = record;
      entry.removedAt = now + keepMs;
      return TOOK;
    });
  }

  async function commitOne(
    { hold, keepMs }: Completion<MemoryTransaction>,
    commit: NonNullable<Completion<MemoryTransaction>['commit']>,
  ): Promise<SettlementResult> {
    if (!held(hold, shared.now())) return LEASE_LOST;
    const { tx, apply } = beginTransaction(storage);
    let record: Payload | undefined;
    try {
      record = await commit(tx);
    } catch (error) {
      return commitFailed(error);
    }
    return shared.write((now) => {
      // The lease may have ended while `commit` ran.
      const entry = held(hold, now);
      if (!entry) return LEASE_LOST;
      apply();
      Object.assign(entry, { done: true, record, removedAt: now + keepMs });
      return TOOK;
    });
  }

  return {
    async begin(claims) {
      return shared.write((now) => claims.map((claim) => begin(shared, claim, now)));
    },

    async complete(completions) {
      const settled: SettlementResult[] = [];
      for (const completion of completions) {
        const done = completeOne(completion);
        settled.push(done instanceof Promise ? await done : done);
      }
      return settled;
    },

    async release(holds) {
      return shared.write((now) =>
        holds.map((hold) => held(hold, now) !== undefined && storage.keys.delete(hold.scope, hold.key)),
      );
    },

    async extend(holds, leaseMs) {
      return shared.write((now) =>
        holds.map((hold) => {
          const entry = held(hold, now);
          if (!entry) return false;
          entry.leaseEndsAt = now + leaseMs;
          // The key must be stored at least until its lease ends.
          entry.removedAt = Math.max(entry.removedAt, entry.leaseEndsAt);
          return true;
        }),
      );
    },

    async purge(scope) {
      return shared.write((now) =>
        storage.keys.remove(scope, (entry) => entry.done || entry.leaseEndsAt <= now, Infinity),
      );
    },

    async mark(marks) {
      return shared.write(() => marks.map((mark) => writeMark(shared, mark)));
    },

    async isMarked(marks) {
      return marks.map((mark) => isMarked(storage, mark));
    },
  };
}

export function isMarked({ marks }: MemoryStorage, { handler, eventId }: ProcessedMark): boolean {
  return marks.has(`${handler}\0${eventId}`);
}

export function writeMark(shared: SharedState, mark: ProcessedMark): boolean {
  const { storage, bounds } = shared;
  if (isMarked(storage, mark)) return false;
  if (storage.marks.size >= bounds.marksMax) throw new EngineFullError('marks', bounds.marksMax);
  storage.marks.set(`${mark.handler}\0${mark.eventId}`, shared.now() + bounds.keepMarksMs);
  return true;
}

function begin({ storage, bounds }: SharedState, claim: Claim, now: number): Begun {
  const { scope, key, fingerprint, leaseMs, keepMs = dayMs, liveMax = Infinity, whenLost = 'tell' } = claim;
  const { keys } = storage;
  let entry = keys.get(scope, key);
  if (entry && entry.removedAt <= now) {
    keys.delete(scope, key);
    entry = undefined;
  }
  if (entry && entry.fingerprint !== fingerprint) return { kind: 'mismatch' };
  if (entry?.done) return { kind: 'done', record: entry.record };
  if (entry && entry.leaseEndsAt > now) return { kind: 'running', retryAfterMs: entry.leaseEndsAt - now };
  if (entry && whenLost === 'tell') return { kind: 'unknown' };
  if (!entry && keys.sizeOf(scope, liveMax, now) >= liveMax) return { kind: 'full' };
  if (!entry && keys.size >= bounds.keysMax) {
    keys.sweep(now, Infinity);
    if (keys.size >= bounds.keysMax) return { kind: 'full' };
  }

  const token = `hold/${storage.next()}`;
  const attempt = (entry?.attempt ?? 0) + 1;
  const begun: KeyEntry = {
    fingerprint,
    token,
    attempt,
    leaseEndsAt: now + leaseMs,
    done: false,
    record: undefined,
    removedAt: now + Math.max(keepMs, leaseMs),
  };
  keys.add(scope, key, begun, now);
  return { kind: 'acquired', hold: { scope, key, token }, attempt };
}
