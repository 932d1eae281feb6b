export { redisFeatures } from './features.ts';
export { type RedisLedgerSettings, redisLedger } from './ledger.ts';
export { openRedis, type RedisEngine, type RedisOptions } from './open-redis.ts';
export { redisRateLimits } from './rate-limits.ts';
export type { RedisClient } from './script-runner.ts';
