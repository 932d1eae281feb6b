import type { SettingsOf } from '../fields.ts';
import type { breaker } from '../parts/breaker.ts';
import type { budget } from '../parts/budget.ts';
import type { bulkhead } from '../parts/bulkhead.ts';
import type { cache } from '../parts/cache.ts';
import type { choice } from '../parts/choice.ts';
import type { fallback } from '../parts/fallback.ts';
import type { hedge } from '../parts/hedge.ts';
import type { limiter } from '../parts/limiter.ts';
import type { mode } from '../parts/mode.ts';
import type { retry } from '../parts/retry.ts';
import type { throttle } from '../parts/throttle.ts';
import type { timeout } from '../parts/timeout.ts';

/**
 * The settings of all parts. Undefined: the policy does not have this part, or the part is off by default.
 * Null: the document switches the part off.
 */
export type PartSettings = Partial<
  SettingsOf<
    typeof retry.fields &
      typeof timeout.fields &
      typeof budget.fields &
      typeof breaker.fields &
      typeof bulkhead.fields &
      typeof limiter.fields &
      typeof throttle.fields &
      typeof hedge.fields &
      typeof choice.fields &
      typeof cache.fields &
      typeof fallback.fields &
      typeof mode.fields
  >
>;
