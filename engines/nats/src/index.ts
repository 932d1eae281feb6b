export { NatsError } from './nats-errors.ts';
export { type NatsOptions, natsLimits, openNats } from './open-nats.ts';
