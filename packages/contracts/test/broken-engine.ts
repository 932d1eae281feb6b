import type { MemoryEngine, MemoryStorage } from '@holdfast/contracts/memory';

/** An engine with one fault, and the check that must find it. */
export interface BrokenEngine {
  readonly fault: string;
  readonly found: string;
  alter(engine: MemoryEngine, storage: MemoryStorage): MemoryEngine;
}

/** A write that changes nothing: a process can die at it. */
export async function extraWrite(engine: MemoryEngine): Promise<void> {
  await engine.presence.leave('nobody');
}
