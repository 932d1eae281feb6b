import { Alarm, type Clock } from 'holdfast';

class Bell extends Alarm {
  readonly ring: () => void;
  constructor(ring: () => void) {
    super();
    this.ring = ring;
  }
}

/**
 * Resolves after `ms`, never where that is Infinity, or when `wake` is called; rejects with the signal's reason the
 * moment it aborts. Leaves neither alarm nor listener behind.
 */
export function pause(
  clock: Clock,
  ms: number,
  signal?: AbortSignal | null,
  onStart?: (wake: () => void) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const bell = new Bell(() => {
      signal?.removeEventListener('abort', leave);
      clock.clear(bell);
      resolve();
    });
    const leave = () => {
      clock.clear(bell);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', leave, { once: true });
    if (ms < Infinity) clock.set(bell, clock.now() + ms);
    onStart?.(bell.ring);
  });
}
