/** Something that ends when a signal aborts. */
export interface AbortFollower {
  signalAborted(reason: unknown): void;
}

/**
 * All followers of one signal, behind one listener. A signal may live as long as its process: with a listener for each call
 * Node warns from the 11th on, and looks through all of them to add another.
 */
class Followers extends Set<AbortFollower> {
  handleEvent({ target }: { target: unknown }): void {
    for (const each of this) each.signalAborted((target as AbortSignal).reason);
  }
}

const followersOf = /* @__PURE__ */ new WeakMap<AbortSignal, Followers>();

/** Tells `follower` when `signal` aborts, until `unfollow`; at once where it has. */
export function follow(signal: AbortSignal, follower: AbortFollower): void {
  if (signal.aborted) {
    follower.signalAborted(signal.reason);
    return;
  }
  let followers = followersOf.get(signal);
  if (!followers) {
    followers = new Followers();
    followersOf.set(signal, followers);
    signal.addEventListener('abort', followers);
  }
  followers.add(follower);
}

/** With the last follower of a signal its listener is removed. */
export function unfollow(signal: AbortSignal, follower: AbortFollower): void {
  const followers = followersOf.get(signal);
  if (!followers?.delete(follower) || followers.size > 0) return;
  followersOf.delete(signal);
  signal.removeEventListener('abort', followers);
}
