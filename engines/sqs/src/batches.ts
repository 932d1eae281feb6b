import type { BatchResultErrorEntry } from '@aws-sdk/client-sqs';
import { type Clock, sleep } from 'holdfast';
import { messageBytesMax } from './sqs-message.ts';

/** SQS allows at most this many entries in one batch request. */
export const batchMax = 10;
const requestsMax = 8;
const triesMax = 4;
const firstDelayMs = 50;

/** Divides entries into batch requests with at most ten entries and at most 1 MiB each. */
export function batchesOf<T>(entries: readonly T[], bytesOf: (entry: T) => number = () => 0): T[][] {
  const batches: T[][] = [];
  let bytes = Infinity;
  for (const entry of entries) {
    const size = bytesOf(entry);
    const last = batches.at(-1);
    bytes += size;
    if (last && last.length < batchMax && bytes <= messageBytesMax) last.push(entry);
    else {
      batches.push([entry]);
      bytes = size;
    }
  }
  return batches;
}

/**
 * Divides entries into rounds, with at most one entry of each message group per round. Each round waits until
 * the previous one is stored. So a later entry never overtakes a failed entry of its group.
 */
export function roundsOf<T>(entries: readonly T[], groupOf: (entry: T) => string): T[][] {
  const rounds: T[][] = [];
  const sent = new Map<string, number>();
  for (const entry of entries) {
    const group = groupOf(entry);
    const round = sent.get(group) ?? 0;
    sent.set(group, round + 1);
    rounds[round] ??= [];
    rounds[round].push(entry);
  }
  return rounds;
}

type Refusals<T> = Map<T, BatchResultErrorEntry>;

/**
 * Sends several batches at the same time, and returns the entries that SQS refused. An entry that failed
 * because of an error of SQS itself is sent again, at most `triesMax` times in total. If it still fails, it
 * is returned, too.
 */
export async function performBatches<T>(
  batches: readonly (readonly T[])[],
  clock: Clock,
  perform: (
    batch: readonly T[],
  ) => Promise<{ readonly Failed?: readonly BatchResultErrorEntry[] | undefined }>,
): Promise<Refusals<T>> {
  const refusals: Refusals<T> = new Map();
  const left = batches.values();
  const work = async () => {
    for (const batch of left)
      for (const [entry, error] of await performOne(batch, clock, perform)) refusals.set(entry, error);
  };
  await Promise.all(Array.from({ length: Math.min(requestsMax, batches.length) }, work));
  return refusals;
}

async function performOne<T>(
  batch: readonly T[],
  clock: Clock,
  perform: (
    batch: readonly T[],
  ) => Promise<{ readonly Failed?: readonly BatchResultErrorEntry[] | undefined }>,
): Promise<Refusals<T>> {
  const refusals: Refusals<T> = new Map();
  let open = batch;
  for (let tries = 1; open.length > 0; tries++) {
    const { Failed = [] } = await perform(open);
    const again: T[] = [];
    for (const error of Failed) {
      const entry = open[Number(error.Id)]!;
      if (error.SenderFault || tries === triesMax) refusals.set(entry, error);
      else again.push(entry);
    }
    open = again;
    if (open.length > 0) await sleep(clock, firstDelayMs * 2 ** (tries - 1));
  }
  return refusals;
}
