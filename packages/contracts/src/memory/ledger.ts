import { EngineFullError } from '../contract-errors.ts';
import type { Payload } from '../envelope.ts';
import type { Begun, Claim, Completion, Hold, Ledger, Mark } from '../ledger.ts';
import { commitFailed, LEASE_LOST, type Settled, TOOK } from '../settled.ts';
import type { Room } from './room.ts';
import { beginTransaction, type KeyEntry, type MemoryStorage, type MemoryTransaction } from './storage.ts';

const dayMs = 24 * 60 * 60 * 1000;

export function memoryLedger(room: Room): Ledger<MemoryTransaction> {
  const { storage } = room;

  function held({ scope, key, token }: Hold, now: number): KeyEntry | undefined {
    const entry = storage.keys.get(scope)?.get(key);
    return entry && !entry.done && entry.token === token && entry.leaseEndsAt > now ? entry : undefined;
  }

  async function completeOne(completion: Completion<MemoryTransaction>): Promise<Settled> {
    const { hold, keepMs, commit } = completion;
    if (!held(hold, room.now())) return LEASE_LOST;
    const { tx, apply } = beginTransaction(storage);
    let record: Payload | undefined;
    try {
      record = commit ? await commit(tx) : completion.record;
    } catch (error) {
      return commitFailed(error);
    }
    return room.write((now) => {
      // Asked again: `commit` may have taken longer than the lease.
      const entry = held(hold, now);
      if (!entry) return LEASE_LOST;
      apply();
      Object.assign(entry, { done: true, record, removedAt: now + keepMs });
      return TOOK;
    });
  }

  return {
    async begin(claims) {
      return room.write((now) => claims.map((claim) => begin(room, claim, now)));
    },

    async complete(completions) {
      const settled: Settled[] = [];
      for (const completion of completions) settled.push(await completeOne(completion));
      return settled;
    },

    async release(holds) {
      return room.write((now) =>
        holds.map((hold) => held(hold, now) !== undefined && storage.keys.get(hold.scope)!.delete(hold.key)),
      );
    },

    async extend(holds, leaseMs) {
      return room.write((now) =>
        holds.map((hold) => {
          const entry = held(hold, now);
          if (entry) entry.leaseEndsAt = now + leaseMs;
          return entry !== undefined;
        }),
      );
    },

    async mark(marks) {
      return room.write(() => marks.map((mark) => writeMark(room, mark)));
    },

    async isMarked(marks) {
      return marks.map((mark) => isMarked(storage, mark));
    },
  };
}

export function isMarked({ marks }: MemoryStorage, { handler, eventId }: Mark): boolean {
  return marks.has(`${handler}\0${eventId}`);
}

/** True for the first only. */
export function writeMark(room: Room, mark: Mark): boolean {
  const { storage, bounds } = room;
  if (isMarked(storage, mark)) return false;
  if (storage.marks.size >= bounds.marksMax) throw new EngineFullError('marks', bounds.marksMax);
  storage.marks.set(`${mark.handler}\0${mark.eventId}`, room.now() + bounds.keepMarksMs);
  return true;
}

function begin({ storage, bounds }: Room, claim: Claim, now: number): Begun {
  const { scope, key, fingerprint, leaseMs, keepMs = dayMs, liveMax = Infinity, whenLost = 'tell' } = claim;
  const entries = storage.keys.get(scope) ?? new Map<string, KeyEntry>();
  storage.keys.set(scope, entries);
  let entry = entries.get(key);
  if (entry && entry.removedAt <= now) {
    entries.delete(key);
    entry = undefined;
  }
  if (entry && entry.fingerprint !== fingerprint) return { kind: 'mismatch' };
  if (entry?.done) return { kind: 'done', record: entry.record };
  if (entry && entry.leaseEndsAt > now) return { kind: 'running', retryAfterMs: entry.leaseEndsAt - now };
  if (entry && whenLost === 'tell') return { kind: 'unknown' };
  if (!entry && isFull(storage, entries, Math.min(liveMax, bounds.keysMax), bounds.keysMax, now)) {
    return { kind: 'full' };
  }

  const token = `hold/${storage.next()}`;
  const attempt = (entry?.attempt ?? 0) + 1;
  entries.set(key, {
    fingerprint,
    token,
    attempt,
    leaseEndsAt: now + leaseMs,
    done: false,
    record: undefined,
    removedAt: now + Math.max(keepMs, leaseMs),
  });
  return { kind: 'acquired', hold: { scope, key, token }, attempt };
}

function isFull(
  storage: MemoryStorage,
  entries: Map<string, KeyEntry>,
  liveMax: number,
  keysMax: number,
  now: number,
): boolean {
  if (entries.size >= liveMax) {
    for (const [key, { removedAt }] of entries) if (removedAt <= now) entries.delete(key);
  }
  const all = [...storage.keys.values()].reduce((sum, { size }) => sum + size, 0);
  return entries.size >= liveMax || all >= keysMax;
}
