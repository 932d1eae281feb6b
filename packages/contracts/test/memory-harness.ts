import type { Harness } from '@holdfast/contracts/conformance';
import {
  type MemoryEngine,
  MemoryStorage,
  type MemoryTransaction,
  memoryEngine,
  memoryFeatures,
} from '@holdfast/contracts/memory';
import { seededRandom, virtualClock } from 'holdfast/testing';

/** Storage outlives an engine here, so a restart can be tested. */
export const features = { ...memoryFeatures, durable: true } as const;

/** A memory engine on virtual time; `alter` makes a broken one of it. */
export async function memoryHarness(
  alter: (engine: MemoryEngine, storage: MemoryStorage) => MemoryEngine = (engine) => engine,
): Promise<Harness<MemoryTransaction>> {
  const clock = virtualClock();
  const storage = new MemoryStorage();
  let writesLeft = Infinity;
  let engines = 0;

  function open(): MemoryEngine {
    const random = seededRandom('ids', engines++);
    let isDead = false;
    const beforeWrite = () => {
      isDead ||= writesLeft === 0;
      if (isDead) throw new Error('the process has died');
      writesLeft -= 1;
    };
    const engine = memoryEngine({ clock, storage, random, beforeWrite });
    return alter({ ...engine, features }, storage);
  }

  return {
    engine: open(),
    clock,
    passTime: (ms) => clock.advance(ms),
    async reopen() {
      writesLeft = Infinity;
      return open();
    },
    dieAfterWrites(writes) {
      writesLeft = writes;
    },
    effect: {
      write: (tx, name) => tx.put(name, 'done'),
      isThere: async (name) => storage.effects.has(name),
    },
    async dispose() {},
  };
}
