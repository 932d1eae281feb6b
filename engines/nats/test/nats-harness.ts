import { setTimeout as pause } from 'node:timers/promises';
import { type Carrier, type CarrierEngine, carrierEngine } from '@holdfast/contracts/carrier';
import type { Harness } from '@holdfast/contracts/conformance';
import { MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { systemClock } from 'holdfast';
import { type NatsHandle, natsCarrier } from '../src/nats-carrier.ts';
import { readNatsOptions } from '../src/open-nats.ts';
import { Session } from '../src/session.ts';

/** Long enough for a few round trips on a busy machine. */
const unitMs = 400;

let number = 0;

/** Engines on one server, under a prefix of their own. `hasStore`: with a store in memory, which outlives an engine. */
export async function natsHarness(url: string, hasStore: boolean): Promise<Harness> {
  const prefix = `test-${process.pid}-${number++}`;
  const storage = new MemoryStorage();
  const opened: Carrier<NatsHandle>[] = [];
  let writesLeft = Infinity;

  function open(): CarrierEngine {
    let isDead = false;
    const write = () => {
      isDead ||= writesLeft === 0;
      if (isDead) throw new Error('the process has died');
      writesLeft -= 1;
    };
    const store = hasStore ? memoryEngine({ storage, beforeWrite: write }) : undefined;
    const { carrier: settings, rest } = readNatsOptions({
      ...{ url, prefix, store, partitions: 16, ackWait: 2 * unitMs, duplicateWindow: 100 },
    });
    const carrier = natsCarrier(settings);
    opened.push(carrier);
    const mortal: Carrier<NatsHandle> = {
      ...carrier,
      async send(...message) {
        write();
        return carrier.send(...message);
      },
      async done(handles) {
        write();
        return carrier.done(handles);
      },
    };
    return carrierEngine(mortal, { ...rest, durability: 'process' });
  }

  return {
    engine: open(),
    clock: systemClock,
    unitMs,
    passTime: (ms) => pause(ms),
    async reopen() {
      // The first process ends without a word.
      await opened.at(-1)!.close();
      writesLeft = Infinity;
      return open();
    },
    dieAfterWrites(writes) {
      writesLeft = writes;
    },
    async dispose() {
      await opened.at(-1)!.close();
      await removeStreams(url, prefix);
    },
  };
}

export async function removeStreams(url: string, prefix: string): Promise<void> {
  const session = new Session({ servers: url }, systemClock, 1000);
  const page = await session.api<{ streams: string[] | null }>(
    'STREAM.NAMES',
    { subject: `${prefix}.>` },
    5000,
  );
  for (const stream of page?.streams ?? []) await session.api(`STREAM.DELETE.${stream}`, undefined, 5000);
  await session.close();
}
