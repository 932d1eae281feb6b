export { openRabbitmq, type RabbitmqOptions, rabbitmqLimits } from './open-rabbitmq.ts';
export { RabbitmqError } from './rabbitmq-errors.ts';
