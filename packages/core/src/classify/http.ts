import { headerReader, readHint } from '../hints.ts';
import type { Judgement, Pack } from '../outcome.ts';
import { errorsIn, guarded, isObject, type Stranger } from './pack.ts';

/**
 * Responses by their status, returned or thrown. 408, 425, 429 and 5xx are worth another try, but not 501 and 505–511,
 * which tell what a server cannot do. 429 and 529 are throttled, and so is a 503 that says when to come back: that
 * server is not broken but full. Hints and `Holdfast: retry=…` are read.
 */
export const http: Pack = {
  pack: 'http',
  values: true,
  classify: guarded((outcome, epochMs) => {
    if (!outcome.ok) {
      for (const error of errorsIn(outcome.error)) {
        const judged = judge(error, epochMs);
        // An error about a good response, such as a body that cannot be parsed, is not this pack's business.
        if (judged && judged !== 'ok') return judged;
      }
      return undefined;
    }
    // Only what has headers is a response: plenty of plain values have a status.
    const { value } = outcome;
    return isObject(value) && isObject(value.headers) ? judge(value, epochMs) : undefined;
  }),
};

function judge(thing: Stranger, epochMs: () => number): Judgement | 'ok' | undefined {
  const response = isObject(thing.response) ? thing.response : thing;
  const status = Number(response.status ?? response.statusCode ?? thing.status ?? thing.statusCode);
  if (!(status >= 100 && status < 600)) return undefined;
  if (status < 400) return 'ok';

  const headers = response.headers ?? thing.headers;
  const hint = readHint(headers, epochMs, status === 429);
  const isThrottled = status === 429 || status === 529 || (status === 503 && hint.retryAfterMs !== undefined);
  const said = /\bretry=(\w+)/.exec(headerReader(headers)('holdfast') ?? '')?.[1];
  return {
    class: isThrottled ? 'throttled' : /408|425|50[0234]|5[2-9]./.test(`${status}`) ? 'transient' : 'fatal',
    retryAfterMs: hint.retryAfterMs,
    retryNever: said === 'never',
    unprocessed: said === 'safe',
    unreadableHint: hint.unreadable,
  };
}
