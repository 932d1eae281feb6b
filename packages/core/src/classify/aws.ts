import type { Pack } from '../decide/outcome.ts';
import { readHint } from '../decide/retry-after.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/** The error names that AWS's own clients treat as throttling. */
const throttledNames =
  /Throttl|^(BandwidthLimitExceeded|LimitExceededException|PriorRequestNotComplete|ProvisionedThroughputExceeded|RequestLimitExceeded|SlowDown|TooManyRequests|TransactionInProgress)/;
const transientNames = /^(RequestTimeout|TimeoutError|IDPCommunicationError)/;

/** Classifies errors of the AWS clients by their name, their `$retryable` property and their HTTP status. */
export const aws: Pack<'aws'> = /* @__PURE__ */ definePack('aws', (error, epochMs) => {
  const { $metadata, $response, $retryable } = error;
  const names = [error.name, error.Code, error.code].map(String);
  const status = Number(isObject($metadata) ? $metadata.httpStatusCode : NaN);
  const isModelled = isObject($retryable);
  const isThrottled =
    status === 429 ||
    (isModelled && $retryable.throttling === true) ||
    names.some((name) => throttledNames.test(name));
  const isTransient =
    isModelled || [500, 502, 503, 504].includes(status) || names.some((name) => transientNames.test(name));
  if (!isThrottled && !isTransient) return status >= 400 ? 'fatal' : undefined;
  const hint = readHint(isObject($response) ? $response.headers : undefined, epochMs, status === 429);
  return {
    class: isThrottled ? 'throttled' : 'transient',
    retryAfterMs: hint.retryAfterMs,
    overload: status === 503,
    unreadableHint: hint.unreadable,
  };
});
