import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type AmbientContext,
  type AmbientStore,
  setAmbientStore,
  withAmbient,
} from './run/ambient-context.ts';
import type { Operation } from './run/run-options.ts';
import type { Work } from './run/work.ts';

export { type AmbientContext, ambientContext, withAmbient, withoutAmbient } from './run/ambient-context.ts';

class AsyncLocalAmbientStore extends AsyncLocalStorage<AmbientContext | undefined> implements AmbientStore {
  ambient<T>({ patienceEndsAt, options }: Work, operation: Operation<T>): Operation<T> {
    const inherited: AmbientContext = options?.priority
      ? { patienceEndsAt, priority: options.priority }
      : { patienceEndsAt };
    return (context) => {
      // When this attempt is aborted, the runs inside it are aborted too.
      const { attempt, signal } = context;
      return withAmbient({ ...inherited, attempt, signal }, () => operation(context));
    };
  }
}

/**
 * Import this module so that nested runs inherit values of the run or request around them. These are the time
 * limit (patience), the priority, the abort signal, and whether an outer caller already retries.
 *
 * Only requests, consumed events and runs with `ambient: true` store these values, because storing them is
 * slow.
 */
setAmbientStore(new AsyncLocalAmbientStore());
