import type { Pack } from '../decide/outcome.ts';
import { headerReader, readHint } from '../decide/retry-after.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/**
 * Classifies HTTP responses by status, whether they are returned or thrown. Retries 408, 425, 429 and 5xx,
 * except 501 and 505–519.
 *
 * 429, 529 and a 503 with Retry-After are classified as throttled, because the server is overloaded. The pack
 * also reads the headers `Retry-After` and `Holdfast`.
 */
export const http: Pack<'http'> = /* @__PURE__ */ definePack(
  'http',
  (thing, epochMs, _, ok) => {
    const response = isObject(thing.response) ? thing.response : thing;
    const headers = response.headers ?? thing.headers;
    const status = Number(response.status ?? response.statusCode ?? thing.status ?? thing.statusCode);
    // Many plain values have a `status`, so a returned value is a response only if it has headers.
    if (!(status >= 100 && status < 600) || (ok && !isObject(headers))) return undefined;
    // A status below 400 is a success. If an error has such a status, something else failed, for example
    // parsing the body. Other packs classify that error.
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
