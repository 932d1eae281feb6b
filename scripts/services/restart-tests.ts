import { afterAll, expect, test, vi } from 'vitest';
import type { Missing, OwnServer } from './start-service.ts';

/** Stores and reads in a server's own protocol, without a client library. Both reject while the server is not ready for it. */
export interface Probe {
  put(url: string, text: string): Promise<void>;
  /** What `put` stored is somewhere in one of the first answers. */
  get(url: string): Promise<string>;
}

const patience = { timeout: 30_000, interval: 50 };

/** What every server must do for those who test on it. */
export function restartTests(server: OwnServer | Missing, probe: Probe): void {
  afterAll(async () => {
    if (server.missing === undefined) await server.stop();
  }, patience.timeout);

  // The orderly one first: RabbitMQ 3 loses a quorum queue for good if it is killed within a second of its declaration.
  test.for(['stop', 'kill'] as const)(
    'keeps data and address over a restart by %s',
    {
      timeout: 3 * patience.timeout,
    },
    async (how) => {
      if (server.missing !== undefined) return;
      const { url, pid } = server;
      await vi.waitFor(() => probe.put(url, `before ${how}`), patience);
      await server.restart(how);
      expect(server.url).toBe(url);
      expect(server.pid).not.toBe(pid);
      await vi.waitFor(async () => expect(await probe.get(url)).toContain(`before ${how}`), patience);
    },
  );
}
