import { reservedHeaders } from '@holdfast/contracts';
import { readHint } from 'holdfast';
import { fieldLengthMax, readRequest, writeRequest, writeResponse } from 'holdfast/wire';
import { isNode, type Node, walk } from '../syntax.ts';
import { code, page, table } from './markdown.ts';
import { commentBefore, sourceFile } from './source-files.ts';

/** What the headers of an event say. A test compares the names with those that `toWire` writes. */
export const eventHeaders: Readonly<Record<string, string>> = {
  'event-id': 'the id, under which it is stored once',
  'event-type': 'its type, a word of the producer',
  'event-key': 'its key: events of one key keep their order where the topic is ordered',
  tenant: 'the tenant that it belongs to',
  'correlation-id': 'the id of the work that it belongs to; left out if it is the id of the event',
  'idempotency-key':
    'the key of its effects, the same in every attempt; left out if it is the id of the event',
  'origin-topic': 'the topic that it was first published to',
  'first-seen-ts': 'when it was first published, epoch ms',
  'expires-ts': "when the customer's patience ends, epoch ms",
  'replay-operation': 'the operation that released it from the parking lot',
  'retry-attempt': 'how many attempts it has behind it; left out for 0',
  'retry-snoozes': 'how often it was put off without an attempt; left out for 0',
  'retry-deaths': 'how many processes died while they handled it; left out for 0',
  'next-delay-ms': 'the wait before its next attempt, in ms',
  'due-ts': 'when it is due, epoch ms; nothing is handled before',
  'payload-kind': '`bytes` if the payload is not text',
  'last-error': 'the last error, as JSON: type, message, code, causes',
  'retry-story': 'its attempts, as JSON',
  'dlq-reason': 'of a parked event: the class of its error',
  'dlq-message': 'of a parked event: the message of its error',
  'dlq-stop': 'of a parked event: the stop reason',
  'final-attempt': 'of a parked event: the number of its last attempt',
  'dlq-consumer': 'of a parked event: the consumer that parked it',
};

/** Headers of a response that say when to try again, each with an example that says 2 s. The first that can be read counts. */
export const hintHeaders: readonly {
  readonly header: string;
  readonly example: string;
  readonly says: string;
}[] = [
  { header: 'retry-after-ms', example: '2000', says: 'ms' },
  { header: 'x-ms-retry-after-ms', example: '2000', says: 'ms, as Azure writes it' },
  { header: 'Retry-After', example: '2', says: 'seconds, or a date' },
  {
    header: 'RateLimit',
    example: '"default";r=0;t=2',
    says: 'seconds in `t`; only if nothing is left, or after a 429',
  },
  {
    header: 'RateLimit-Reset',
    example: '2',
    says: 'seconds; only with `RateLimit-Remaining: 0`, or after a 429',
  },
  { header: 'X-RateLimit-Reset', example: '2', says: 'the same with the older name; also epoch seconds' },
];

const wireFile = 'packages/core/src/wire.ts';

export function wireHeadersPage(): string {
  const request = writeRequest({ patienceMs: 1500, attempt: 2, owner: true, priority: 'critical' })!;
  const response = writeResponse({ retry: 'safe' })!;
  return page(
    'Every header on the wire',
    'What is sent and read, by clients, servers, gateways and engines.',
    [
      '## The `Holdfast` header',
      `A dictionary of structured fields (RFC 9651). It is a hint: one that is longer than ${fieldLengthMax} characters or malformed is ignored, and so is a field that is unknown.`,
      `Of a request, such as \`Holdfast: ${request}\`:`,
      fieldTable('RequestFields', {
        patienceMs: 'patience',
        attempt: 'attempt',
        owner: 'owner',
        priority: 'priority',
      }),
      `Of a response, such as \`Holdfast: ${response}\`:`,
      fieldTable('ResponseFields', { retry: 'retry' }),
      '## `Idempotency-Key`',
      'One string of 1 to 255 visible characters. A client sends the same key with every attempt of one operation; a server with the part `idempotency` executes ' +
        "it once and answers the others from its record, with `Idempotent-Replayed: true`. `createFetch` makes keys with `idempotency: 'auto'`.",
      '## Read from others',
      'The patience of a request, where `Holdfast` has none:',
      table(
        ['header', 'example', 'patience'],
        (['grpc-timeout', 'x-envoy-expected-rq-timeout-ms'] as const).map((header) => {
          const example = header === 'grpc-timeout' ? '1500m' : '1500';
          return [code(header), code(example), `${readRequest({ [header]: example }).patienceMs} ms`];
        }),
      ),
      '`x-request-timeout-ms`, a whole number of ms, is read as well, by the part `deadline` and by the gateway, where none of these is sent.',
      'When to try again, of a response. The first that can be read counts; it is the least wait, and chance only adds to it:',
      table(
        ['header', 'example', 'wait', 'what it says'],
        hintHeaders.map(({ header, example, says }) => [
          code(header),
          code(example),
          `${readHint({ [header]: example }, () => 0, true).retryAfterMs} ms`,
          says,
        ]),
      ),
      '`grpc-retry-pushback-ms` is read as well; one that is no number means never.',
      '## Headers of events',
      'Message brokers without columns (Kafka, RabbitMQ, NATS, SQS) carry these beside the payload. Producers must not use their names; what a default says is left out.',
      table(
        ['header', 'what it says'],
        [...reservedHeaders].map((name) => [code(name), eventHeaders[name] ?? '']),
      ),
    ],
  );
}

/** The fields of an interface of `wire.ts` under their names on the wire. */
function fieldTable(owner: string, names: Readonly<Record<string, string>>): string {
  const file = sourceFile(wireFile);
  const rows: string[][] = [];
  walk(file.tree, (node) => {
    if (node.type !== 'TSInterfaceDeclaration' || (node.id as Node).name !== owner) return;
    for (const member of (node.body as Node).body as Node[]) {
      const name = String((member.key as Node).name);
      const annotation = (member.typeAnnotation as Node).typeAnnotation;
      const { start, end } = annotation as Node & { end: number };
      if (!isNode(annotation)) continue;
      const type = file.text.slice(start, end).replace(' | undefined', '');
      rows.push([code(names[name] ?? ''), values[type] ?? type, commentBefore(file, member.start)]);
    }
  });
  return table(['field', 'value', 'what it says'], rows);
}

/** How the values of a type are written. */
const values: Readonly<Record<string, string>> = {
  number: 'a whole number',
  boolean: '`?1` or `?0`',
  Priority: '`critical`, `default` or `sheddable`',
  Retry: '`never`, `safe` or `unknown`',
};
