/** An object whose method is called when a signal aborts. */
export interface AbortListener {
  aborted(reason: unknown): void;
}

/**
 * All listeners of one signal share a single event listener. Adding an event listener searches all existing
 * ones, so 10,000 of them would be slow.
 */
class SharedListener extends Set<AbortListener> {
  handleEvent({ target }: { target: unknown }): void {
    // Listeners may remove themselves during this loop. No listener is added, because the signal has already
    // aborted.
    for (const each of this) each.aborted((target as AbortSignal).reason);
  }
}

const sharedListeners = /* @__PURE__ */ new WeakMap<AbortSignal, SharedListener>();

/** Calls `listener.aborted` when `signal` aborts. `offAbort` removes the listener. */
export function onAbort(signal: AbortSignal, listener: AbortListener): void {
  let shared = sharedListeners.get(signal);
  if (!shared) {
    shared = new SharedListener();
    sharedListeners.set(signal, shared);
    signal.addEventListener('abort', shared);
  }
  shared.add(listener);
}

/**
 * Removes `listener`. When the signal has no other listener, it removes the shared event listener as well.
 */
export function offAbort(signal: AbortSignal, listener: AbortListener): void {
  const shared = sharedListeners.get(signal);
  if (shared?.delete(listener) && !shared.size) {
    sharedListeners.delete(signal);
    signal.removeEventListener('abort', shared);
  }
}
