import { Agent } from 'undici';
import type { Loop } from '../../harness.ts';

const CONCURRENCY = 64;

/** Timeouts are long: no attempt must fail because the machine is busy. */
export const policy = { attemptTimeout: '2s' } as const;

/** Sends `times` requests, 64 at a time: each of 64 senders begins the next when its last is answered. */
export function spread(send: () => Promise<unknown>): Loop {
  return async (times) => {
    let left = times;
    const sender = async () => {
      while (left-- > 0) await send();
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, sender));
  };
}

/** Every contestant has its own connections, as many as it has senders. */
export function agent(): Agent {
  return new Agent({ connections: CONCURRENCY });
}
