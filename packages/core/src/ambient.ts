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
      // `signal` is the signal of the attempt, not of the run: calls inside an attempt are aborted together with the
      // attempt.
      const { attempt, signal } = context;
      return withAmbient({ ...inherited, attempt, signal }, () => operation(context));
    };
  }
}

/**
 * Importing this module carries patience (the time limit of the work), priority, the signal and the fact that a caller
 * already retries, through asynchronous calls. These values are written only where work enters the process (a server
 * request, a consumed event, `run` with `ambient: true`), and every run reads them: a write costs more than a whole
 * call, a read almost nothing.
 */
setAmbientStore(new AsyncLocalAmbientStore());
