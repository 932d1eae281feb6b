/** The two methods that `holdfast/ambient` uses: core is compiled without the types of any platform. */
declare module 'node:async_hooks' {
  export class AsyncLocalStorage<T> {
    getStore(): T | undefined;
    run<R>(store: T, fn: () => R): R;
  }
}
