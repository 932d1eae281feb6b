import { headerReader } from '../decide/hints.ts';
import type { OutcomeClass, Pack } from '../decide/outcome.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/** By status; all others are fatal. DEADLINE_EXCEEDED is a timeout: transient, and no proof of not being processed. */
const classes: Readonly<Record<number, OutcomeClass>> = {
  1: 'ignored', // CANCELLED
  4: 'transient', // DEADLINE_EXCEEDED
  8: 'throttled', // RESOURCE_EXHAUSTED
  10: 'transient', // ABORTED: a conflict with another writer; a retry repeats the whole operation
  14: 'transient', // UNAVAILABLE
};

/** Errors of grpc-js, Connect and nice-grpc. The server's pushback is a hint; if it is not a number, it forbids retries. */
export const grpc: Pack<'grpc'> = /* @__PURE__ */ definePack('grpc', ({ code, details, metadata }) => {
  // Errors of other libraries have small numbers as codes, too: the next line asks for `details` or `metadata`.
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
