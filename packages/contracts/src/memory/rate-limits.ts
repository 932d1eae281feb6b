import { gcraTake, gcraWait } from 'holdfast/machines';
import type { RateAnswer, RateLimits, RateRequest } from '../rate-limits.ts';
import { removeExpired, type SharedState } from './shared-state.ts';

/**
 * When `rateLimitsMax` keys are stored, all further keys share this key's limit. So memory stays bounded, and
 * every request is limited.
 */
const overflowKey = '';

export function memoryRateLimits(shared: SharedState): RateLimits {
  const { tats } = shared.storage;

  function storedKey(key: string, now: number): string {
    if (tats.has(key) || tats.size < shared.bounds.rateLimitsMax) return key;
    removeExpired(tats, (tat) => tat, now, Infinity);
    return tats.size < shared.bounds.rateLimitsMax ? key : overflowKey;
  }

  function answer(request: RateRequest, now: number): RateAnswer {
    const takes = request.map((take) => ({ ...take, cost: take.cost ?? 1, name: storedKey(take.key, now) }));
    const waitMs = Math.max(
      0,
      ...takes.map((take) => gcraWait(take, tats.get(take.name) ?? 0, now, take.cost)),
    );
    const allowed = waitMs === 0;
    const left = takes.map((take) => {
      const { name, ratePerMs, burst, cost } = take;
      if (allowed && cost > 0) tats.set(name, gcraTake(take, tats.get(name) ?? 0, now, cost));
      const fullInMs = Math.max(0, (tats.get(name) ?? 0) - now);
      return { tokens: Math.max(0, burst - fullInMs * ratePerMs), fullInMs };
    });
    return { allowed, waitMs, left };
  }

  return {
    async take(requests) {
      return shared.write((now) => requests.map((request) => answer(request, now)));
    },

    async forget(keys) {
      shared.write(() => {
        for (const key of keys) tats.delete(key);
      });
    },
  };
}
