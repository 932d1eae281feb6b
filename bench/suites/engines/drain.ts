import { setTimeout as pause } from 'node:timers/promises';
import type { Contestant, Rate } from '../events/event-case.ts';

/** Called once for each event. */
export type Handle = () => Promise<void>;

/** Something that empties a queue of a broker. */
export interface Drain {
  /** Stores this many events; not measured. */
  fill(count: number): Promise<void>;
  /** Starts to consume, and resolves when this many are handled and acknowledged. */
  drain(count: number, handle: Handle): Promise<void>;
  /** Ends what `drain` has started; not measured. */
  rest?(): Promise<void>;
  close(): Promise<void>;
}

export const payload = 'x'.repeat(1000);
/** Handlers that run at the same time, on every side. */
export const concurrency = 100;

/** A round fills the queue, then measures how it is emptied. */
export function emptying(
  { fill, drain, rest, close }: Drain,
  count: number,
  serverNs: () => number,
): Contestant {
  return {
    async round() {
      await fill(count);
      const rate = await drainRate(count, serverNs, (handle) => drain(count, handle));
      await rest?.();
      return rate;
    },
    close,
  };
}

/**
 * Processor time counts from the start, the clock on the wall from the first event on: how long a group takes to begin is
 * another matter. `serverNs`: processor time of the server so far, where it counts.
 */
export async function drainRate(
  count: number,
  serverNs: () => number,
  drain: (handle: Handle) => Promise<void>,
): Promise<Rate> {
  let firstAt: bigint | undefined;
  const cpuBefore = process.cpuUsage();
  const serverBefore = serverNs();
  await drain(async () => {
    firstAt ??= process.hrtime.bigint();
  });
  const wallMs = Number(process.hrtime.bigint() - firstAt!) / 1e6;
  const { user, system } = process.cpuUsage(cpuBefore);
  const processorUs = user + system + (serverNs() - serverBefore) / 1000;
  return { wall: (count / wallMs) * 1000, processor: (count / processorUs) * 1e6 };
}

/** Hands events to the handler, as many at a time as all others do. */
export async function handleAll<T>(events: readonly T[], handle: Handle): Promise<void> {
  for (let at = 0; at < events.length; at += concurrency)
    await Promise.all(events.slice(at, at + concurrency).map(() => handle()));
}

/** Not in a loop without a rest: it would take a core from the server. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await pause(1);
}
