import { headerReader, readHint } from '../decide/hints.ts';
import type { Pack } from '../decide/outcome.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/**
 * Responses by their status, returned or thrown. 408, 425, 429 and 5xx are worth another try, but not 501 and 505–519,
 * which tell what a server cannot do. 429 and 529 are throttled, and so is a 503 that says when to come back: that
 * server is not broken but full. Hints and `Holdfast: retry=…` are read.
 */
export const http: Pack<'http'> = /* @__PURE__ */ definePack(
  'http',
  (thing, epochMs, _, ok) => {
    const response = isObject(thing.response) ? thing.response : thing;
    const headers = response.headers ?? thing.headers;
    const status = Number(response.status ?? response.statusCode ?? thing.status ?? thing.statusCode);
    // Only what has headers is a response, where it was returned: plenty of plain values have a status.
    if (!(status >= 100 && status < 600) || (ok && !isObject(headers))) return undefined;
    // An error about a good response, such as a body that cannot be parsed, is not this pack's business.
    if (status < 400) return ok ? 'ok' : undefined;

    const hint = readHint(headers, epochMs, status === 429);
    const isThrottled =
      status === 429 || status === 529 || (status === 503 && hint.retryAfterMs !== undefined);
    const said = /\bretry=(\w+)/.exec(headerReader(headers)('holdfast') ?? '')?.[1];
    return {
      class: isThrottled ? 'throttled' : /408|425|50[0234]|5[2-9]./.test(`${status}`) ? 'transient' : 'fatal',
      retryAfterMs: hint.retryAfterMs,
      retryNever: said === 'never',
      unprocessed: said === 'safe',
      overload: status === 503,
      unreadableHint: hint.unreadable,
    };
  },
  true,
  true,
);
