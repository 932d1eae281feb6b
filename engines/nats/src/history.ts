import type { HistoryRange, Page } from '@holdfast/contracts';
import { numberIn } from '@holdfast/contracts';
import { createInbox, type Msg } from '@nats-io/transport-node';
import { type Clock, sleep } from 'holdfast';
import type { Session } from './session.ts';

/**
 * Each page is read with a temporary consumer. If this process crashes, the server removes the consumer after
 * this many ms.
 */
const inactiveMs = 30_000;

export interface LogRange extends Pick<HistoryRange, 'from' | 'to' | 'limit' | 'cursor'> {}

/**
 * Reads messages of a stream in order, including acknowledged ones. The cursor is a sequence number of the
 * stream.
 */
export async function readLog<T extends { readonly at: number }>(
  { session, clock, timeoutMs }: { session: Session; clock: Clock; timeoutMs: number },
  { stream, subject }: { readonly stream: string; readonly subject: string },
  { from, to = Infinity, limit, cursor }: LogRange,
  read: (message: Msg) => T & { readonly sequence: number },
): Promise<Page<T>> {
  const start =
    cursor !== undefined
      ? { deliver_policy: 'by_start_sequence', opt_start_seq: numberIn(cursor) + 1 }
      : from !== undefined && from > 0
        ? { deliver_policy: 'by_start_time', opt_start_time: new Date(from).toISOString() }
        : { deliver_policy: 'all' };
  const config = {
    ...start,
    ...{ filter_subject: subject, ack_policy: 'none', replay_policy: 'instant', max_deliver: 1 },
    ...{ mem_storage: true, inactive_threshold: inactiveMs * 1e6 },
  };
  const made = await session.api<{ name: string; num_pending: number }>(
    `CONSUMER.CREATE.${stream}`,
    { stream_name: stream, config },
    timeoutMs,
  );
  if (!made || made.num_pending === 0) return { items: [], cursor: undefined };
  try {
    const wanted = Math.min(limit, made.num_pending);
    const messages = await pullOnce(session, clock, `${stream}.${made.name}`, wanted, timeoutMs);
    const items = messages.map(read);
    // The server compares times in nanoseconds and we in milliseconds, so the first messages may be slightly
    // too early.
    const within = items.filter(({ at }) => at >= (from ?? 0) && at < to);
    const last = items.at(-1);
    const isLast = items.length < limit || made.num_pending <= limit || (last !== undefined && last.at >= to);
    return { items: within, cursor: isLast || !last ? undefined : String(last.sequence) };
  } finally {
    await session.api(`CONSUMER.DELETE.${stream}.${made.name}`, undefined, timeoutMs);
  }
}

async function pullOnce(
  session: Session,
  clock: Clock,
  consumer: string,
  batch: number,
  timeoutMs: number,
): Promise<Msg[]> {
  const connection = await session.connection();
  const inbox = createInbox();
  const messages: Msg[] = [];
  const ended = new AbortController();
  const subscription = connection.subscribe(inbox, {
    callback: (_, message) => {
      if (!message.headers?.code) messages.push(message);
      if (message.headers?.code || messages.length >= batch) ended.abort();
    },
  });
  const body = JSON.stringify({ batch, expires: timeoutMs * 1e6 });
  connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${consumer}`, body, { reply: inbox });
  await sleep(clock, timeoutMs, ended.signal).catch(() => {});
  subscription.unsubscribe();
  return messages;
}
