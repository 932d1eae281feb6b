/**
 * The two methods that `holdfast/ambient` uses. They are declared here because core is compiled without platform types.
 */
declare module 'node:async_hooks' {
  export class AsyncLocalStorage<T> {
    getStore(): T | undefined;
    run<R>(store: T, fn: () => R): R;
  }
}
