import type { OutcomeClass, Pack } from '../decide/outcome.ts';
import { headerReader } from '../decide/retry-after.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/** The class of each gRPC status. All other statuses are fatal. */
const classes: Readonly<Record<number, OutcomeClass>> = {
  1: 'ignored', // CANCELLED
  4: 'transient', // DEADLINE_EXCEEDED
  8: 'throttled', // RESOURCE_EXHAUSTED
  10: 'transient', // ABORTED: a conflict with another writer; a retry repeats the whole operation
  14: 'transient', // UNAVAILABLE
};

/**
 * Classifies errors of grpc-js, Connect and nice-grpc. Also reads the server's `grpc-retry-pushback-ms`: a
 * number is the delay before the retry, and any other value forbids a retry.
 */
export const grpc: Pack<'grpc'> = /* @__PURE__ */ definePack('grpc', ({ code, details, metadata }) => {
  // Errors of other libraries also have small numbers as `code`. So a gRPC error must also have `details` or
  // `metadata`.
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
