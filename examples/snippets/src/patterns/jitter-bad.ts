/** Waits of 0.5 s, 1 s, 2 s, …: all sessions that were cut off together come back together, each time. */
export async function connect(open: () => Promise<string>): Promise<string> {
  for (let waitMs = 500; ; waitMs = Math.min(2 * waitMs, 32_000)) {
    try {
      return await open();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }
}
