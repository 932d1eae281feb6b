import type { Pack } from '../decide/outcome.ts';
import { definePack } from './pack.ts';

/**
 * The codes that Kafka's protocol marks as retriable (no leader, not enough replicas, coordinator loading, …), and
 * librdkafka's negative codes for brokers that are down, names that do not resolve and timeouts.
 */
const retriableCodes = /^([35679]|1[34569]|20|41|56|7[0-2458]|80|83|88|-(195|193|192|187|185|180))$/;
/** 89: the quota is used up. −184: the local queue is full. */
const throttledCodes = /^(89|-184)$/;

/**
 * Classifies errors of kafkajs, Confluent's client, node-rdkafka and @platformatic/kafka. Most have a flag that says
 * whether they are retriable. But librdkafka sets it only in transactions, so the codes are read first.
 */
export const kafka: Pack<'kafka'> = /* @__PURE__ */ definePack('kafka', (error) => {
  const { name, code, origin, retriable, isRetriable, canRetry } = error;
  // The client used up its own retries. Whether to try again depends on the cause, which is classified next.
  if (name === 'KafkaJSNumberOfRetriesExceeded') return undefined;
  if (typeof origin === 'string' || /^KafkaJS/.test(`${name}`)) {
    if (throttledCodes.test(`${code}`)) return 'throttled';
    if (retriableCodes.test(`${code}`)) return 'transient';
  }
  const flag = retriable ?? isRetriable ?? canRetry;
  return flag === true ? 'transient' : flag === false ? 'fatal' : undefined;
});
