import type { Pack } from '../decide/outcome.ts';
import { definePack } from './pack.ts';

/**
 * Retriable by the protocol's own table (no leader, not enough replicas, coordinator loading, …), and librdkafka's
 * numbers below zero for brokers that are down, names that do not resolve and time that ran out.
 */
const retriableCodes = /^([35679]|1[34569]|20|41|56|7[0-2458]|80|83|88|-(195|193|192|187|185|180))$/;
/** The quota is used up; the local queue is full. */
const throttledCodes = /^(89|-184)$/;

/**
 * Errors of kafkajs, Confluent's client, node-rdkafka and @platformatic/kafka. Most say themselves whether they pass, but
 * librdkafka does so only in transactions, so its numbers are asked first.
 */
export const kafka: Pack<'kafka'> = /* @__PURE__ */ definePack('kafka', (error) => {
  const { name, code, origin, retriable, isRetriable, canRetry } = error;
  // The client gave up on the cause, and that knows better whether it can pass.
  if (name === 'KafkaJSNumberOfRetriesExceeded') return undefined;
  if (typeof origin === 'string' || /^KafkaJS/.test(`${name}`)) {
    if (throttledCodes.test(`${code}`)) return 'throttled';
    if (retriableCodes.test(`${code}`)) return 'transient';
  }
  const says = retriable ?? isRetriable ?? canRetry;
  return says === true ? 'transient' : says === false ? 'fatal' : undefined;
});
