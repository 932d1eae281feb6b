/** Someone who must know when the caller leaves. */
export interface AbortListener {
  leave(reason: unknown): void;
}

/**
 * All who wait on one signal, behind a single listener: platforms look through their listeners one by one, so ten
 * thousand calls with one signal would take a hundred million looks to add.
 */
class Crowd extends Set<AbortListener> {
  handleEvent({ target }: { target: unknown }): void {
    // Those who leave are taken out on the way, and nobody joins: the signal has aborted.
    for (const each of this) each.leave((target as AbortSignal).reason);
  }
}

const crowds = /* @__PURE__ */ new WeakMap<AbortSignal, Crowd>();

/** `who` leaves when `signal` aborts, until `stay`. */
export function onAbort(signal: AbortSignal, who: AbortListener): void {
  let crowd = crowds.get(signal);
  if (!crowd) {
    crowd = new Crowd();
    crowds.set(signal, crowd);
    signal.addEventListener('abort', crowd);
  }
  crowd.add(who);
}

/** Forgets `who`; with the last of a crowd its listener goes. */
export function stay(signal: AbortSignal, who: AbortListener): void {
  const crowd = crowds.get(signal);
  if (crowd?.delete(who) && !crowd.size) {
    crowds.delete(signal);
    signal.removeEventListener('abort', crowd);
  }
}
