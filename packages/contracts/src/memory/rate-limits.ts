import { gcraTake, gcraWait } from 'holdfast/machines';
import type { RateAnswer, RateLimits, RateRequest } from '../rate-limits.ts';
import { type Room, removeExpired } from './room.ts';

/** When every key is in debt, strangers share this one: memory stays bounded and no one's debt is forgiven. */
const strangers = '';

export function memoryRateLimits(room: Room): RateLimits {
  const { tats } = room.storage;

  function nameOf(key: string, now: number): string {
    if (tats.has(key) || tats.size < room.bounds.rateLimitsMax) return key;
    removeExpired(tats, (tat) => tat, now, Infinity);
    return tats.size < room.bounds.rateLimitsMax ? key : strangers;
  }

  function answer(request: RateRequest, now: number): RateAnswer {
    const takes = request.map((take) => ({ ...take, cost: take.cost ?? 1, name: nameOf(take.key, now) }));
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
      return room.write((now) => requests.map((request) => answer(request, now)));
    },

    async forget(keys) {
      room.write(() => {
        for (const key of keys) tats.delete(key);
      });
    },
  };
}
