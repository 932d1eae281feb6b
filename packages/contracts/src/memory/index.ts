export { type MemoryEngine, type MemoryOptions, memoryEngine, memoryFeatures } from './engine.ts';
export type { MemoryBounds } from './room.ts';
export { MemoryStorage, type MemoryTransaction } from './storage.ts';
