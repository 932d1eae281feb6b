import { missing, type SizeLimits } from '@holdfast/contracts';
import type { Arrival, Carrier } from '@holdfast/contracts/carrier';
import type { Msg, NodeConnectionOptions } from '@nats-io/transport-node';
import type { Clock } from 'holdfast';
import { fromNatsHeaders, toNatsHeaders } from './header-text.ts';
import { readLog } from './history.ts';
import { Names } from './names.ts';
import { NatsError } from './nats-errors.ts';
import { Pulls } from './pulls.ts';
import { type Request, Session } from './session.ts';
import { Streams } from './streams.ts';

export interface NatsCarrierSettings {
  readonly connection: NodeConnectionOptions;
  readonly clock: Clock;
  readonly limits: SizeLimits;
  readonly prefix: string;
  readonly replicas: number;
  readonly partitions: number;
  readonly ackWaitMs: number;
  readonly duplicateWindowMs: number;
  readonly timeoutMs: number;
}

/**
 * One delivery. `ack` is the NATS subject for its acknowledgement. The name of this subject contains stream,
 * consumer and sequence.
 */
export interface NatsHandle {
  readonly ack: string;
}

/**
 * How often `send` sends a message that is not confirmed. The server recognizes a repeated message by its id.
 */
const sendsMax = 3;
const pullMax = 1000;

/** Sends and receives events through NATS JetStream, with one stream for each topic. */
export function natsCarrier(settings: NatsCarrierSettings): Carrier<NatsHandle> {
  const { clock, limits, ackWaitMs, timeoutMs } = settings;
  const session = new Session(settings.connection, clock, Math.min(1000, ackWaitMs / 20));
  const names = new Names(settings.prefix);
  const streams = new Streams({ ...settings, session, names });
  const open = new Set<Pulls>();

  function arrivalOf(
    topic: string,
    message: Msg,
  ): Omit<Arrival<NatsHandle>, 'handle' | 'askedAt'> & { sequence: number } {
    const { sequence, at } = positionOf(message.reply ?? '');
    const { data } = message;
    const headers = fromNatsHeaders(message.headers);
    return { messageId: `${topic}/${sequence}`, headers, payload: data, key: undefined, at, sequence };
  }

  /**
   * Sends an answer for each delivery, such as `+ACK`. Resolves when the server has confirmed all answers.
   * Rejects if a confirmation is missing.
   */
  async function answer(handles: readonly NatsHandle[], payload: string): Promise<void> {
    const answers = await session.askAll(
      handles.map(({ ack }) => ({ subject: ack, payload })),
      timeoutMs,
    );
    const missing = answers.filter((each) => each === undefined || each.headers?.code === 503).length;
    if (missing > 0)
      throw new NatsError('UNANSWERED', `NATS did not confirm ${missing} of ${handles.length} answers`);
  }

  return {
    name: 'nats',
    limits,
    features: {
      arrivalOrder: true,
      anyDelay: missing('delays are exact, but retries are not leased in the order in which they are due'),
      durable: true,
    },
    tells: { key: false, time: true },
    holdMs: ackWaitMs,

    ensure: (topic, wanted) => streams.ensure(topic, wanted),
    has: (topic) => streams.has(topic),
    topics: () => streams.topics(),

    async send(topic, queue, messages) {
      await streams.describe(topic);
      const requests = messages.map((message): Request => {
        const partition = streams.partitionOf(topic, message.key);
        const headers = toNatsHeaders(message.headers, message.dedupId);
        return { subject: names.subject(topic, queue, partition), payload: message.payload, headers };
      });
      return sendAll(session, requests, timeoutMs);
    },

    open(topic, queue, listener) {
      const stream = names.stream(topic);
      const partitions = queue === 'hot' ? streams.partitions(topic) : [0];
      const pulls = partitions.map((partition) => {
        const consumer = names.consumer(queue, partition);
        return new Pulls({
          // Partitions above 0 contain events with keys. They deliver one event at a time, to keep the order
          // of each key.
          ...{ session, clock, stream, consumer, batchMax: partition > 0 ? 1 : pullMax },
          onMessages: (messages) =>
            listener.arrived(
              messages.map((message) => ({
                ...arrivalOf(topic, message),
                handle: { ack: message.reply! },
                askedAt: session.readSince,
              })),
            ),
        });
      });
      for (const each of pulls) open.add(each);
      return {
        credit(count) {
          for (const each of pulls) each.credit(count);
        },
        async look() {
          await Promise.race(pulls.map((each) => each.look()));
        },
      };
    },

    async done(handles) {
      await answer(handles, '+ACK');
      return handles.map(() => true);
    },

    async release(handles) {
      const connection = await session.connection();
      for (const { ack } of handles) connection.publish(ack, '-NAK');
      await connection.flush();
    },

    keep: (handles) => answer(handles, '+WPI'),

    later({ ack }, delayMs) {
      const delay = Math.ceil(Math.min(delayMs, delayMaxMs) * 1e6);
      // If the connection is down, the message is not returned now. The server then delivers it again after
      // `ackWait`, and it is returned again.
      void session.connection().then(
        (connection) => connection.publish(ack, `-NAK {"delay":${delay}}`),
        () => {},
      );
    },

    async counts(topic) {
      const counts = { waiting: 0, delayed: 0, delivered: 0 };
      for (const { name, num_pending, num_ack_pending } of await streams.consumers(topic)) {
        if (name === names.consumer('retry', 0)) counts.delayed += num_pending + num_ack_pending;
        else {
          counts.waiting += num_pending;
          counts.delivered += num_ack_pending;
        }
      }
      return counts;
    },

    async history(topic, range) {
      const log = { stream: names.stream(topic), subject: names.subject(topic, 'hot', '*') };
      const { keepSettledMs = 0 } = (await streams.describe(topic)) ?? {};
      // A stream that deletes acknowledged events has no history, and the server allows no second consumer on
      // it.
      if (keepSettledMs === 0) return { items: [], cursor: undefined };
      return readLog({ session, clock, timeoutMs }, log, range, (message) => arrivalOf(topic, message));
    },

    /** Deletes acknowledged events that were published longer ago than `keepSettledMs`. */
    async sweep() {
      let purged = 0;
      for (const topic of await streams.topics()) {
        const { keepSettledMs = 0 } = (await streams.describe(topic)) ?? {};
        if (keepSettledMs === 0) continue;
        const stream = names.stream(topic);
        const range = { from: clock.epochMs() - keepSettledMs, limit: 1 };
        for (const { name, ack_floor, config } of await streams.consumers(topic)) {
          const isRetry = name === names.consumer('retry', 0);
          const log = { stream, subject: config.filter_subject };
          const read = (message: Msg) => arrivalOf(topic, message);
          const { items } = isRetry
            ? { items: [] }
            : await readLog({ session, clock, timeoutMs }, log, range, read);
          const keptFrom = (items[0] as { sequence: number } | undefined)?.sequence ?? Infinity;
          const seq = Math.min(keptFrom, ack_floor.stream_seq + 1);
          const body = { filter: config.filter_subject, seq };
          const result = await session.api<{ purged: number }>(`STREAM.PURGE.${stream}`, body, timeoutMs);
          purged += result?.purged ?? 0;
        }
      }
      return purged;
    },

    async close() {
      for (const each of open) each.close();
      await session.close();
    },
  };
}

/** The longest delay of one `-NAK`. A message with a longer delay arrives early, and is delayed again. */
const delayMaxMs = 24 * 60 * 60 * 1000;

async function sendAll(session: Session, requests: readonly Request[], timeoutMs: number): Promise<number[]> {
  const duplicates: number[] = [];
  let open = requests.map((request, index) => ({ request, index }));
  for (let sends = 0; sends < sendsMax && open.length > 0; sends++) {
    const answers = await session.askAll(
      open.map(({ request }) => request),
      timeoutMs,
    );
    const unanswered: typeof open = [];
    for (const [at, item] of open.entries()) {
      const answer = answers[at];
      if (answer === undefined || answer.headers?.code === 503) unanswered.push(item);
      else {
        const { error, duplicate } = answer.json<PublishAnswer>();
        if (error) throw new NatsError('REFUSED', `NATS refused an event: ${error.description}`);
        // After the first try, `duplicate` can also mean that the server has stored our own earlier try. So
        // only the first try counts.
        if (duplicate && sends === 0) duplicates.push(item.index);
      }
    }
    open = unanswered;
  }
  if (open.length > 0)
    throw new NatsError('UNANSWERED', `NATS did not confirm ${open.length} of ${requests.length} events`);
  return duplicates;
}

interface PublishAnswer {
  readonly duplicate?: boolean;
  readonly error?: { readonly description: string };
}

/**
 * Reads the sequence and the time from an acknowledgement subject:
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<…>.<time in ns>.<pending>`. Since NATS 2.11, two more
 * parts stand before the stream.
 */
function positionOf(ack: string): { sequence: number; at: number } {
  const parts = ack.split('.');
  const shift = parts.length > 9 ? 2 : 0;
  return { sequence: Number(parts[5 + shift]), at: Math.floor(Number(parts[7 + shift]) / 1e6) };
}
