import { type AssembliesOptions, assemblies, type Program } from '@holdfast/assembly';
import { MemoryStorage, type MemoryTransaction, memoryEngine } from '@holdfast/contracts/memory';
import { seededRandom, type VirtualClock, virtualClock } from 'holdfast/testing';

// biome-ignore lint/suspicious/noExplicitAny: programs of any input and result
export type AnyProgram = Program<any, any, MemoryTransaction>;

/** Lets everything happen that needs no time to pass. */
export async function settle(turns = 3): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Moves time in steps, and lets things happen after each. */
async function pass(clock: VirtualClock, ms: number, steps = 10): Promise<void> {
  await settle();
  for (let step = 0; step < steps; step++) {
    await clock.advance(ms / steps);
    await settle();
  }
}

/** A store in memory on virtual time, on which processes can be started and killed. */
export function stage() {
  const clock = virtualClock();
  const storage = new MemoryStorage();
  let processes = 0;

  function open(
    programs: readonly AnyProgram[],
    options: Partial<AssembliesOptions<MemoryTransaction>> = {},
  ) {
    const random = seededRandom('process', processes++);
    let isDead = false;
    const engine = memoryEngine({
      clock,
      storage,
      random,
      beforeWrite() {
        if (isDead) throw new Error('the process has died');
      },
    });
    const work = assemblies({ engine, programs, clock, random, lease: '30s', ...options });
    /** From now on the process does nothing to the store. */
    const kill = () => {
      isDead = true;
    };
    return Object.assign(work, { kill, engine });
  }

  return { clock, storage, open, settle, pass: (ms: number, steps?: number) => pass(clock, ms, steps) };
}
