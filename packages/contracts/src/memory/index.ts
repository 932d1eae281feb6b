export { type MemoryEngine, type MemoryOptions, memoryEngine, memoryFeatures } from './engine.ts';
export type { MemoryBounds } from './shared-state.ts';
export { MemoryStorage, type MemoryTransaction } from './storage.ts';
