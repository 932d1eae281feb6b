import type { Request, RequestHandler } from 'express';
import { systemClock } from 'holdfast';
import { readTable } from 'holdfast/fields';
import { attachedExchange } from './exchange.ts';
import { NodeExchange } from './node/node-exchange.ts';
import { clockField } from './option-fields.ts';
import { orderParts, type Part, runParts } from './part.ts';
import type { PartEnvironment } from './part-environment.ts';

export { contextOf } from './exchange.ts';
export { sendResponse } from './node/held-response.ts';

/** Creates middleware for Express 5. Use it for an application, a router or one route. */
export function guard(parts: readonly Part[], environment: PartEnvironment = {}): RequestHandler {
  const ordered = orderParts(parts);
  const { clock = systemClock } = readTable({ clock: clockField }, environment, 'guard.');
  return (request, response, next) => {
    const made = attachedExchange(request) as ExpressExchange | undefined;
    const exchange = made ?? new ExpressExchange(request, response, clock);
    runParts(ordered, exchange, () => next(), next);
  };
}

class ExpressExchange extends NodeExchange {
  /** Express knows the route only in the middleware of that route. */
  override get route(): string | undefined {
    const { route, baseUrl } = this.native as Request;
    return typeof route?.path === 'string' ? baseUrl + route.path : undefined;
  }

  /** Inside a router, Express removes the prefix of the router from `url`. */
  override get url(): string {
    return (this.native as Request).originalUrl;
  }
}
