import { headerReader } from '../decide/hints.ts';
import type { OutcomeClass, Pack } from '../decide/outcome.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/**
 * The class of each gRPC status; all others are fatal. DEADLINE_EXCEEDED is a timeout, so the call may have been
 * processed.
 */
const classes: Readonly<Record<number, OutcomeClass>> = {
  1: 'ignored', // CANCELLED
  4: 'transient', // DEADLINE_EXCEEDED
  8: 'throttled', // RESOURCE_EXHAUSTED
  10: 'transient', // ABORTED: a conflict with another writer; a retry repeats the whole operation
  14: 'transient', // UNAVAILABLE
};

/**
 * Classifies errors of grpc-js, Connect and nice-grpc. The server's retry pushback is a delay; if it is not a number,
 * it forbids retries.
 */
export const grpc: Pack<'grpc'> = /* @__PURE__ */ definePack('grpc', ({ code, details, metadata }) => {
  // Errors of other libraries may have small numbers as codes, too. So the next line requires `details` or `metadata`.
  if (typeof code !== 'number' || !(code >= 1 && code <= 16)) return undefined;
  if (typeof details !== 'string' && !isObject(metadata)) return undefined;
  const pushback = headerReader(metadata)('grpc-retry-pushback-ms');
  const isReadable = /^\d{1,15}$/.test(pushback ?? '');
  return {
    class: classes[code] ?? 'fatal',
    retryAfterMs: isReadable ? Number(pushback) : undefined,
    retryNever: pushback !== undefined && !isReadable,
  };
});
