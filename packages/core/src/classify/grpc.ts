import { headerReader } from '../decide/hints.ts';
import type { OutcomeClass, Pack } from '../decide/outcome.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/** By status; what is not here was answered for good. A deadline is transient as every timeout is: it proves nothing. */
const classes: Readonly<Record<number, OutcomeClass>> = {
  1: 'ignored', // CANCELLED
  4: 'transient', // DEADLINE_EXCEEDED
  8: 'throttled', // RESOURCE_EXHAUSTED
  10: 'transient', // ABORTED: lost against another writer, and the whole operation is what we repeat
  14: 'transient', // UNAVAILABLE
};

/** Errors of grpc-js, Connect and nice-grpc. A pushback of the server is a hint; one that is not a number means never. */
export const grpc: Pack<'grpc'> = /* @__PURE__ */ definePack('grpc', ({ code, details, metadata }) => {
  // Others have small numbers for codes, too.
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
