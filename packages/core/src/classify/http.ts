import { headerReader, readHint } from '../decide/hints.ts';
import type { Pack } from '../decide/outcome.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/**
 * Classifies responses by their status, whether they are returned or thrown. 408, 425, 429 and 5xx are tried again, but
 * not 501 and 505–519, which mean that the server cannot do it. 429 and 529 are throttled, and so is a 503 with a
 * Retry-After: that server is overloaded, not broken. The headers that say when to try again are read, and so is
 * `Holdfast: retry=…`.
 */
export const http: Pack<'http'> = /* @__PURE__ */ definePack(
  'http',
  (thing, epochMs, _, ok) => {
    const response = isObject(thing.response) ? thing.response : thing;
    const headers = response.headers ?? thing.headers;
    const status = Number(response.status ?? response.statusCode ?? thing.status ?? thing.statusCode);
    // A returned value is a response only if it has headers: many plain values have a `status`.
    if (!(status >= 100 && status < 600) || (ok && !isObject(headers))) return undefined;
    // An error about a good response, such as a body that cannot be parsed, is left to other packs.
    if (status < 400) return ok ? 'ok' : undefined;

    const hint = readHint(headers, epochMs, status === 429);
    const isThrottled =
      status === 429 || status === 529 || (status === 503 && hint.retryAfterMs !== undefined);
    const retry = /\bretry=(\w+)/.exec(headerReader(headers)('holdfast') ?? '')?.[1];
    return {
      class: isThrottled ? 'throttled' : /408|425|50[0234]|5[2-9]./.test(`${status}`) ? 'transient' : 'fatal',
      retryAfterMs: hint.retryAfterMs,
      retryNever: retry === 'never',
      unprocessed: retry === 'safe',
      overload: status === 503,
      unreadableHint: hint.unreadable,
    };
  },
  true,
  true,
);
