import type { Request, RequestHandler } from 'express';
import { type Clock, systemClock } from 'holdfast';
import { refuseUnknown } from 'holdfast/fields';
import { exchangeIn } from './exchange.ts';
import { goThrough } from './go-through.ts';
import { NodeExchange } from './node/node-exchange.ts';
import { inOrder, type Part } from './part.ts';

export { contextOf } from './exchange.ts';
export { sendAnswer } from './node/held-response.ts';

/** Middleware for Express 5: for an application, a router or one route. */
export function guard(
  parts: readonly Part[],
  environment: { readonly clock?: Clock | undefined } = {},
): RequestHandler {
  const ordered = inOrder(parts);
  refuseUnknown({ clock: true }, environment, 'guard.');
  const { clock = systemClock } = environment;
  return (request, response, next) => {
    const made = exchangeIn(request) as ExpressExchange | undefined;
    const exchange = made ?? new ExpressExchange(request, response, clock);
    goThrough(ordered, exchange, () => next(), next);
  };
}

class ExpressExchange extends NodeExchange {
  /** Known to the middleware of a route only: before that, all routes count as one. */
  override get route(): string | undefined {
    const { route, baseUrl } = this.native as Request;
    return typeof route?.path === 'string' ? baseUrl + route.path : undefined;
  }

  /** Not as routers cut it. */
  override get url(): string {
    return (this.native as Request).originalUrl;
  }
}
