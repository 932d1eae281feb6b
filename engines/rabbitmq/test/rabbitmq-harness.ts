import { type Carrier, type CarrierEngine, carrierEngine } from '@holdfast/contracts/carrier';
import type { Harness } from '@holdfast/contracts/conformance';
import { MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { connect } from 'amqplib';
import { sleep, systemClock } from 'holdfast';
import type { RabbitmqHandle } from '../src/held-channel.ts';
import { Names } from '../src/names.ts';
import { readRabbitmqOptions } from '../src/open-rabbitmq.ts';
import { rabbitmqCarrier } from '../src/rabbitmq-carrier.ts';

/** Long enough for a few round trips on a busy machine. */
const unitMs = 400;

let number = 0;

/** Engines on one server, with topics of their own. `hasStore`: with a store in memory, which outlives an engine. */
export async function rabbitmqHarness(url: string, hasStore: boolean): Promise<Harness> {
  const prefix = `c${process.pid}-${systemClock.epochMs().toString(36)}-${++number}-`;
  const storage = new MemoryStorage();
  const opened: Carrier<RabbitmqHandle>[] = [];
  const topics = new Set<string>();
  let writesLeft = Infinity;

  function open(): CarrierEngine {
    let isDead = false;
    const write = () => {
      isDead ||= writesLeft === 0;
      if (isDead) throw new Error('the process has died');
      writesLeft -= 1;
    };
    const store = hasStore ? memoryEngine({ storage, beforeWrite: write }) : undefined;
    const { carrier: settings, rest } = readRabbitmqOptions({ url, store });
    const carrier = rabbitmqCarrier(settings);
    opened.push(carrier);
    const mortal: Carrier<RabbitmqHandle> = {
      ...carrier,
      async ensure(topic, wanted) {
        topics.add(topic);
        return carrier.ensure(topic, wanted);
      },
      async send(...message) {
        write();
        return carrier.send(...message);
      },
      async done(handles) {
        write();
        return carrier.done(handles);
      },
    };
    return carrierEngine(mortal, { ...rest, durability: 'power' });
  }

  return {
    engine: open(),
    clock: systemClock,
    unitMs,
    prefix,
    passTime: (ms) => sleep(systemClock, ms),
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
      await removeTopics(url, topics);
    },
  };
}

export async function removeTopics(url: string, topics: Iterable<string>): Promise<void> {
  const names = new Names('holdfast');
  const connection = await connect(url);
  const channel = await connection.createChannel();
  for (const topic of topics)
    for (const queue of ['hot', 'retry'] as const) await channel.deleteQueue(names.queue(topic, queue));
  await connection.close();
}
