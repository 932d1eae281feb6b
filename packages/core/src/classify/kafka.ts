import type { Pack } from '../decide/outcome.ts';
import { definePack } from './pack.ts';

/**
 * Codes that Kafka's protocol marks as retriable. Negative codes come from librdkafka (broker down, unknown host,
 * timeout).
 */
const retriableCodes = /^([35679]|1[34569]|20|41|56|7[0-2458]|80|83|88|-(195|193|192|187|185|180))$/;
/** 89: the quota is used up. −184: the local queue is full. */
const throttledCodes = /^(89|-184)$/;

/**
 * Classifies errors of kafkajs, Confluent's client, node-rdkafka and @platformatic/kafka. Codes come before the
 * clients' own flags, because librdkafka sets its flag only in transactions.
 */
export const kafka: Pack<'kafka'> = /* @__PURE__ */ definePack('kafka', (error) => {
  const { name, code, origin, retriable, isRetriable, canRetry } = error;
  // The client used up its own retries. The cause of this error decides, and is classified next.
  if (name === 'KafkaJSNumberOfRetriesExceeded') return undefined;
  if (typeof origin === 'string' || /^KafkaJS/.test(`${name}`)) {
    if (throttledCodes.test(`${code}`)) return 'throttled';
    if (retriableCodes.test(`${code}`)) return 'transient';
  }
  const flag = retriable ?? isRetriable ?? canRetry;
  return flag === true ? 'transient' : flag === false ? 'fatal' : undefined;
});
