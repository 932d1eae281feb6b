import type { RateAnswer, RateLimits, RateRequest } from '@holdfast/contracts';
import { type Item, type RedisClient, runBatch, scriptOf } from './script-runner.ts';
import * as scripts from './scripts.ts';

type TakeReply = [waitMs: string, ...fullInMs: string[]];

/**
 * GCRA rate limits. Each key stores one number. The key expires when all its tokens are available again. In a
 * cluster, all keys of a request must have the same hash tag.
 */
export function redisRateLimits(client: RedisClient, { prefix }: { readonly prefix: string }): RateLimits {
  const take = scriptOf(client, 'take', scripts.take);
  const nameOf = (key: string) => `${prefix}rate:${key}`;

  return {
    async take(requests) {
      const items = requests.map(
        (request): Item => ({
          keys: request.map(({ key }) => nameOf(key)),
          args: [
            request.length,
            ...request.flatMap(({ ratePerMs, burst, cost = 1 }) => [ratePerMs, burst, cost]),
          ],
        }),
      );
      const replies = await runBatch<TakeReply>(client, take, items);
      return replies.map((reply, index) => toAnswer(reply, requests[index]!));
    },

    async forget(keys) {
      await Promise.all(keys.map((key) => client.unlink(nameOf(key))));
    },
  };
}

function toAnswer([wait, ...fullIn]: TakeReply, request: RateRequest): RateAnswer {
  const waitMs = wait === 'never' ? Infinity : Number(wait);
  const left = request.map(({ burst, ratePerMs }, index) => {
    const fullInMs = Number(fullIn[index]);
    return { tokens: Math.max(0, burst - fullInMs * ratePerMs), fullInMs };
  });
  return { allowed: waitMs === 0, waitMs, left };
}
