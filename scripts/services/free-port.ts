import { randomInt } from 'node:crypto';
import net from 'node:net';

/**
 * Below the ports that systems give to outgoing connections (Linux: from 32768). A client that calls a stopped server again
 * and again cannot take its port, nor connect to itself.
 */
const lowest = 15_000;
const end = 30_000;

/** A port of loopback that is free now. */
export async function freePort(): Promise<number> {
  for (let triesLeft = 100; triesLeft > 0; triesLeft--) {
    const port = randomInt(lowest, end);
    if (await isFree(port)) return port;
  }
  throw new Error(`No port between ${lowest} and ${end} was found free.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.on('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
