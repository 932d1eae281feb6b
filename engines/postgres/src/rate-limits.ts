import type { RateLimits } from '@holdfast/contracts';
import { comparableText } from './column-values.ts';
import type { Database } from './database.ts';

const takeText = 'SELECT allowed, wait_ms, tokens, full_in_ms FROM {schema}.take($1, $2, $3, $4, $5)';

/** Rate limits by the clock of the server. A batch of requests is one SQL call. */
export function postgresRateLimits(database: Database): RateLimits {
  return {
    async take(requests) {
      const takes = requests.flatMap((request, index) =>
        request.map((take) => ({ ...take, request: index + 1 })),
      );
      if (takes.length === 0) return requests.map(() => ({ allowed: true, waitMs: 0, left: [] }));
      const rows = await database.rows(takeText, [
        takes.map(({ request }) => request),
        takes.map(({ key }) => comparableText(key)),
        takes.map(({ ratePerMs }) => ratePerMs),
        takes.map(({ burst }) => burst),
        takes.map(({ cost = 1 }) => cost),
      ]);
      return requests.map((_, index) => {
        const [allowed, waitMs, tokens, fullInMs] = rows[index] ?? [true, 0, [], []];
        return {
          allowed: allowed as boolean,
          waitMs: waitMs as number,
          left: (tokens as number[]).map((left, place) => ({
            tokens: left,
            fullInMs: (fullInMs as number[])[place]!,
          })),
        };
      });
    },

    async forget(keys) {
      await database.rows('DELETE FROM {schema}.rate_limit WHERE key = ANY ($1)', [keys.map(comparableText)]);
    },
  };
}
