import type { Features } from '@holdfast/contracts';
import { carrierEngine, carrierFeatures } from '@holdfast/contracts/carrier';
import type { Harness } from '@holdfast/contracts/conformance';
import { MemoryStorage, memoryEngine } from '@holdfast/contracts/memory';
import { seededRandom, virtualClock } from 'holdfast/testing';
import { type CarrierTraits, MessageServer } from './message-server.ts';

/** Like NATS and SQS: the server keeps a message for a while, and takes back what comes too early. */
export const queueTraits: CarrierTraits = { holdMs: 2000, later: true, deduplicates: true };
/** Like RabbitMQ and Kafka: a message is kept while the connection lives, and delayed messages come when they are due. */
export const channelTraits: CarrierTraits = {};

export function featuresOf(traits: CarrierTraits, hasStore: boolean): Features {
  const carrier = new MessageServer(virtualClock()).connect(traits);
  return carrierFeatures(carrier, hasStore ? memoryEngine() : undefined);
}

/** Engines on one server, and on one store if there is one. All of time is virtual. */
export async function carrierHarness(traits: CarrierTraits, hasStore: boolean): Promise<Harness> {
  const clock = virtualClock();
  const server = new MessageServer(clock);
  const storage = new MemoryStorage();
  let writesLeft = Infinity;
  let engines = 0;
  let carrier = server.connect(traits);

  function open() {
    const random = seededRandom('ids', engines++);
    let isDead = false;
    const write = () => {
      isDead ||= writesLeft === 0;
      if (isDead) throw new Error('the process has died');
      writesLeft -= 1;
    };
    const fault: CarrierTraits['fault'] = (call, phase) => {
      if (phase === 'before' && (call === 'send' || call === 'done')) write();
    };
    carrier = server.connect({ ...traits, fault });
    const store = hasStore ? memoryEngine({ clock, storage, random, beforeWrite: write }) : undefined;
    return carrierEngine(carrier, { store, clock, random, durability: 'process' });
  }

  const engine = open();
  return {
    engine,
    clock,
    passTime: (ms) => clock.advance(ms),
    async reopen() {
      server.kill(carrier);
      writesLeft = Infinity;
      return open();
    },
    dieAfterWrites(writes) {
      writesLeft = writes;
    },
    async dispose() {},
  };
}
