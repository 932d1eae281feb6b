import path from 'node:path';
import type { CaseResult } from '../compare.ts';
import type { Suite } from '../suite.ts';
import { inProcess } from '../worker.ts';
import { brokerNames } from './engines/broker-benches.ts';
import type { EventsAnswer, EventsJob } from './events.ts';

const ROUNDS = 5;
const workerFile = path.join(import.meta.dirname, 'engines-process.ts');

/** How fast a consumer empties a queue of a message broker; each case in a process and on a server of its own. */
export const suite: Suite = {
  async run({ rounds = ROUNDS, caseContains }) {
    const results: CaseResult[] = [];
    for (const engine of brokerNames) {
      const ask = (names: readonly string[]) =>
        inProcess<EventsJob, EventsAnswer>(workerFile, [], { engine, names, rounds });
      const { cases, missing } = await ask([]);
      if (missing !== undefined) console.error(`Without the cases of ${engine}: ${missing}.`);
      for (const name of cases.filter((each) => each.includes(caseContains))) {
        results.push(...(await ask([name])).results);
      }
    }
    return results;
  },
  notes: [
    'events/s of processor time of the consuming process (RabbitMQ: and of the server), and on the wall from the first event on. Events of 1 kB are published',
    'before, which is not measured. Each is given to an async handler that does nothing, at most 100 at a time.',
    'floor: the same client without us, acknowledging in batches: the stream of @platformatic/kafka with a commit for 1,000; amqplib with an',
    'ack for 100; ReceiveMessage and DeleteMessageBatch, eight at a time; consume and ackAck of NATS, 100 at once; XREADGROUP, XACK and XDEL of 500.',
    'ours: a consumer of @holdfast/events without a ledger. With a ledger: each event is looked up and marked in a SQLite file; on Redis, in Redis.',
    '1 % retried: until each event had its first attempt; the floor is the same consumer when none fails; kafkajs sends 1 % to a retry topic.',
    'Servers on loopback, one node each. ElasticMQ keeps messages in memory. Peers acknowledge each event (kafkajs commits for 1,000).',
  ],
};
