/** Never resolves. Rejects with the reason of `signal` when that aborts. */
export function untilAborted(signal?: AbortSignal | null): Promise<never> {
  return new Promise((_, reject) => {
    signal?.throwIfAborted();
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
