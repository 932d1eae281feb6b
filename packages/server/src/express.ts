import type { Request, RequestHandler } from 'express';
import { type Clock, systemClock } from 'holdfast';
import { readTable } from 'holdfast/fields';
import { attachedExchange } from './exchange.ts';
import { NodeExchange } from './node/node-exchange.ts';
import { clockField } from './option-fields.ts';
import { orderParts, type Part, runParts } from './part.ts';

export { contextOf } from './exchange.ts';
export { sendResponse } from './node/held-response.ts';

/** Makes middleware for Express 5, for an application, a router or one route. */
export function guard(
  parts: readonly Part[],
  environment: { readonly clock?: Clock | undefined } = {},
): RequestHandler {
  const ordered = orderParts(parts);
  const { clock = systemClock } = readTable({ clock: clockField }, environment, 'guard.');
  return (request, response, next) => {
    const made = attachedExchange(request) as ExpressExchange | undefined;
    const exchange = made ?? new ExpressExchange(request, response, clock);
    runParts(ordered, exchange, () => next(), next);
  };
}

class ExpressExchange extends NodeExchange {
  /**
   * Express knows the route only in middleware of that route. In middleware that runs before the route, `route` is
   * undefined, and all routes count as one.
   */
  override get route(): string | undefined {
    const { route, baseUrl } = this.native as Request;
    return typeof route?.path === 'string' ? baseUrl + route.path : undefined;
  }

  /** `url` would lack the prefix of the router; `originalUrl` has it. */
  override get url(): string {
    return (this.native as Request).originalUrl;
  }
}
