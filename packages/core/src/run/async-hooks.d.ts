/**
 * The methods of AsyncLocalStorage that `holdfast/ambient` uses. They are declared here because this package
 * is compiled without the types of Node.
 */
declare module 'node:async_hooks' {
  export class AsyncLocalStorage<T> {
    getStore(): T | undefined;
    run<R>(store: T, fn: () => R): R;
  }
}
