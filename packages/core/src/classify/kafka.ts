import type { Pack } from '../decide/outcome.ts';
import { definePack } from './pack.ts';

/**
 * Error codes that the Kafka protocol marks as retriable. The negative codes are those of librdkafka, such as
 * broker down, unknown host and timeout.
 */
const retriableCodes = /^([35679]|1[34569]|20|41|56|7[0-2458]|80|83|88|-(195|193|192|187|185|180))$/;
/** Error codes that mean overload. 89: the quota is used up. −184: the local queue is full. */
const throttledCodes = /^(89|-184)$/;

/**
 * Classifies errors of kafkajs, Confluent's client, node-rdkafka and @platformatic/kafka. The error code is
 * checked before the `retriable` flag of the client, because librdkafka sets that flag only in transactions.
 */
export const kafka: Pack<'kafka'> = /* @__PURE__ */ definePack('kafka', (error) => {
  const { name, code, origin, retriable, isRetriable, canRetry } = error;
  // The client has used up its own retries. This error says nothing about the failure, so its cause is
  // classified instead.
  if (name === 'KafkaJSNumberOfRetriesExceeded') return undefined;
  if (typeof origin === 'string' || /^KafkaJS/.test(`${name}`)) {
    if (throttledCodes.test(`${code}`)) return 'throttled';
    if (retriableCodes.test(`${code}`)) return 'transient';
  }
  const flag = retriable ?? isRetriable ?? canRetry;
  return flag === true ? 'transient' : flag === false ? 'fatal' : undefined;
});
