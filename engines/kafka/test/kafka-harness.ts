import { type CarrierEngine, carrierEngine } from '@holdfast/contracts/carrier';
import type { Harness } from '@holdfast/contracts/conformance';
import { MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { sleep, systemClock } from 'holdfast';
import { kafkaCarrier } from '../src/kafka-carrier.ts';
import { readOptions } from '../src/kafka-options.ts';

/** Unlike the defaults, these make a test short: the server lets a member go after a second of silence. */
export const quick = { sessionTimeout: '1s', rebalanceTimeout: '5s', tiers: ['200ms', '1s'] } as const;

let harnesses = 0;

/** Engines on one Kafka, and on one store if there is one. No other harness uses the same topics. */
export async function kafkaHarness(
  url: string,
  { unitMs, partitions, hasStore }: { unitMs: number; partitions: number; hasStore: boolean },
): Promise<Harness> {
  const prefix = `c${process.pid}-${Date.now().toString(36)}-${++harnesses}-`;
  const storage = new MemoryStorage();
  const opened: CarrierEngine[] = [];
  let writesLeft = Infinity;

  function open(): CarrierEngine {
    let isDead = false;
    const write = () => {
      isDead ||= writesLeft === 0;
      if (isDead) throw new Error('the process has died');
      writesLeft -= 1;
    };
    const store = hasStore ? memoryEngine({ storage, beforeWrite: write }) : undefined;
    const carrier = kafkaCarrier(
      readOptions({
        ...quick,
        url,
        group: `${prefix}g`,
        partitions,
        onError: (e) => process.env.DEBUG_K && console.log('onError', prefix, e),
      }),
      hasStore,
    );
    const { send, done } = carrier;
    const mortal = Object.assign(carrier, {
      send: async (...args: Parameters<typeof send>) => {
        write();
        return send.apply(carrier, args);
      },
      done: async (...args: Parameters<typeof done>) => {
        write();
        return done.apply(carrier, args);
      },
    });
    const engine = carrierEngine(mortal, { store, durability: 'process' });
    opened.push(engine);
    return engine;
  }

  const engine = open();
  return {
    engine,
    clock: systemClock,
    unitMs,
    prefix,
    passTime: (ms) => sleep(systemClock, ms),
    async reopen() {
      await opened.at(-1)!.close();
      writesLeft = Infinity;
      return open();
    },
    dieAfterWrites(writes) {
      writesLeft = writes;
    },
    async dispose() {
      await Promise.all(opened.map((each) => each.close()));
    },
  };
}
