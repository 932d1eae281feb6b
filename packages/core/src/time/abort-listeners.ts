/** Is told when a signal aborts. */
export interface AbortListener {
  aborted(reason: unknown): void;
}

/**
 * All listeners of one signal behind a single event listener. Platforms search their listeners one by one, so that ten
 * thousand calls with one signal would take a hundred million steps to add.
 */
class SharedListener extends Set<AbortListener> {
  handleEvent({ target }: { target: unknown }): void {
    // Listeners remove themselves meanwhile, and none is added: the signal has aborted.
    for (const each of this) each.aborted((target as AbortSignal).reason);
  }
}

const sharedListeners = /* @__PURE__ */ new WeakMap<AbortSignal, SharedListener>();

/** Calls `listener.aborted` when `signal` aborts, until `offAbort`. */
export function onAbort(signal: AbortSignal, listener: AbortListener): void {
  let shared = sharedListeners.get(signal);
  if (!shared) {
    shared = new SharedListener();
    sharedListeners.set(signal, shared);
    signal.addEventListener('abort', shared);
  }
  shared.add(listener);
}

/** Forgets `listener`. With the last one of a signal, the event listener is removed. */
export function offAbort(signal: AbortSignal, listener: AbortListener): void {
  const shared = sharedListeners.get(signal);
  if (shared?.delete(listener) && !shared.size) {
    sharedListeners.delete(signal);
    signal.removeEventListener('abort', shared);
  }
}
