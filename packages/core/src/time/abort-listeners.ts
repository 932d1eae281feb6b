/** An object whose method is called when a signal aborts. */
export interface AbortListener {
  aborted(reason: unknown): void;
}

/**
 * All listeners of one signal behind a single event listener. Platforms search all listeners when one is added, so
 * 10,000 listeners would be slow.
 */
class SharedListener extends Set<AbortListener> {
  handleEvent({ target }: { target: unknown }): void {
    // Listeners may remove themselves during the loop. None is added, because the signal has aborted.
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

/** Removes `listener`. When no listener of the signal is left, it removes the event listener as well. */
export function offAbort(signal: AbortSignal, listener: AbortListener): void {
  const shared = sharedListeners.get(signal);
  if (shared?.delete(listener) && !shared.size) {
    sharedListeners.delete(signal);
    signal.removeEventListener('abort', shared);
  }
}
