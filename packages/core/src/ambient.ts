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
    const asked: AmbientContext = options?.priority
      ? { patienceEndsAt, priority: options.priority }
      : { patienceEndsAt };
    return (context) => {
      // The signal of the attempt, not of the customer: what is done for it ends with it.
      const { attempt, signal } = context;
      return withAmbient({ ...asked, attempt, signal }, () => operation(context));
    };
  }
}

/**
 * Importing this module lets patience, ownership and the customer's signal ride along asynchronous calls. They
 * are written only at the edges (a server request, a consumed event, `run` with `ambient: true`)
 * and read everywhere: a write costs more than a whole call, a read next to nothing.
 */
setAmbientStore(new AsyncLocalAmbientStore());
