import { postgres } from './postgres.ts';
import type { Recipe } from './recipe.ts';
import { redis } from './redis.ts';

/** Every server that tests, drills and benchmarks can ask for. */
export const catalog = { postgres, redis } satisfies Record<string, Recipe>;

export type ServiceName = keyof typeof catalog;
