type RawHeaders = readonly (readonly [Buffer | null, Buffer | null])[];

/**
 * Headers that Spring for Apache Kafka writes, each with our header of the same meaning. Numbers have 4 or 8
 * bytes.
 */
const springHeaders: { readonly [name: string]: { readonly name: string; readonly isNumber?: true } } = {
  'kafka_dlt-original-topic': { name: 'origin-topic' },
  'kafka_original-topic': { name: 'origin-topic' },
  'retry_topic-original-timestamp': { name: 'first-seen-ts', isNumber: true },
  'kafka_dlt-original-timestamp': { name: 'first-seen-ts', isNumber: true },
  'kafka_original-timestamp': { name: 'first-seen-ts', isNumber: true },
  'kafka_dlt-exception-cause-fqcn': { name: 'dlq-reason' },
  'kafka_dlt-exception-fqcn': { name: 'dlq-reason' },
  'kafka_exception-fqcn': { name: 'dlq-reason' },
  'kafka_dlt-exception-message': { name: 'dlq-message' },
  'kafka_exception-message': { name: 'dlq-message' },
  'kafka_dlt-original-consumer-group': { name: 'dlq-consumer' },
  'retry_topic-backoff-timestamp': { name: 'due-ts', isNumber: true },
};

const springNumbers = new Set([
  ...['kafka_dlt-original-partition', 'kafka_dlt-original-offset', 'kafka_original-partition'],
  ...['kafka_original-offset', 'retry_topic-attempts'],
]);

const messageMax = 512;

/**
 * Adds our headers to a record of a Spring consumer: the origin of the event, its attempts, and why it was
 * parked. Our headers that the record already has are not overwritten. Spring's headers are kept, with binary
 * numbers as text.
 */
export function readForeignHeaders(
  texts: Readonly<{ [name: string]: string }>,
  raw: RawHeaders,
): { [name: string]: string } {
  const read: { [name: string]: string } = { ...texts };
  for (const [bytes, value] of raw) {
    const name = bytes?.toString() ?? '';
    if (value !== null && (springNumbers.has(name) || springHeaders[name]?.isNumber))
      read[name] = numberText(value);
  }
  // The first match in the table wins. The header of the exception's cause comes before the header of the
  // exception, because the cause says more.
  for (const [spring, { name }] of Object.entries(springHeaders))
    if (read[spring] && read[name] === undefined) read[name] = read[spring]!.slice(0, messageMax);
  const attempts = Number(read['retry_topic-attempts'] ?? Number.NaN);
  // Spring stores the number of the next attempt. We store the number of attempts that were made.
  if (attempts >= 1) read['retry-attempt'] ??= String(attempts - 1);
  if (read['dlq-reason'] !== undefined && read['dlq-stop'] === undefined) {
    read['dlq-stop'] = 'attempts_exhausted';
    read['final-attempt'] ??= String(Math.max(1, attempts || 1));
  }
  return read;
}

function numberText(value: Buffer): string {
  if (value.length === 4) return String(value.readInt32BE());
  if (value.length === 8) return String(value.readBigInt64BE());
  return value.toString();
}
