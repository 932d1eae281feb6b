import { any } from '../classify/any.ts';
import { aws } from '../classify/aws.ts';
import { grpc } from '../classify/grpc.ts';
import { http } from '../classify/http.ts';
import { kafka } from '../classify/kafka.ts';
import { network } from '../classify/network.ts';
import { sql } from '../classify/sql.ts';
import { breaker } from '../parts/breaker.ts';
import { budget } from '../parts/budget.ts';
import { bulkhead } from '../parts/bulkhead.ts';
import { cache } from '../parts/cache.ts';
import { choice } from '../parts/choice.ts';
import { fallback } from '../parts/fallback.ts';
import { hedge } from '../parts/hedge.ts';
import { limiter } from '../parts/limiter.ts';
import { mode } from '../parts/mode.ts';
import { retry } from '../parts/retry.ts';
import { throttle } from '../parts/throttle.ts';
import { timeout } from '../parts/timeout.ts';
import { notices } from '../report/notices.ts';
import { definePolicy, type Environment, type Policy } from './policy.ts';
import type { PolicySpec } from './policy-spec.ts';
import { registry } from './registry.ts';

const define = /* @__PURE__ */ definePolicy([
  retry,
  timeout,
  budget,
  breaker,
  bulkhead,
  limiter,
  throttle,
  hedge,
  choice,
  cache,
  fallback,
  mode,
  notices,
  registry,
  network,
  http,
  sql,
  grpc,
  aws,
  kafka,
  any,
]);

/**
 * Makes a policy from a document. On by default: retries with full jitter, a retry budget, a breaker, the
 * choice of targets and a learnt attempt timeout. The document can switch on the other parts.
 */
export const policy: (spec?: PolicySpec, environment?: Environment) => Policy<PolicySpec> = define;
