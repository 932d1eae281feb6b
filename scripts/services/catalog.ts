import { elasticmq } from './elasticmq.ts';
import { envoy } from './envoy.ts';
import { kafka } from './kafka.ts';
import { nats } from './nats.ts';
import { postgres } from './postgres.ts';
import { rabbitmq } from './rabbitmq.ts';
import type { Recipe } from './recipe.ts';
import { redis } from './redis.ts';

/** Every server that tests, drills and benchmarks can ask for. */
export const catalog = {
  postgres,
  redis,
  rabbitmq,
  nats,
  kafka,
  elasticmq,
  envoy,
} satisfies Record<string, Recipe>;

export type ServiceName = keyof typeof catalog;

/** Few of these run at a time. */
export function isHeavy(name: ServiceName): boolean {
  const recipe: Recipe = catalog[name];
  return recipe.isHeavy === true;
}
