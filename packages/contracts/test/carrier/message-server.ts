import { defaultSizeLimits, missing, type TopicSettings } from '@holdfast/contracts';
import type { Arrival, Carrier, IntakeListener, Message, QueueName } from '@holdfast/contracts/carrier';
import { type Clock, Timer } from 'holdfast';

interface Stored {
  readonly sequence: number;
  readonly message: Message;
  readonly at: number;
  readonly queue: QueueName;
  dueAt: number;
  delivery: Handle | undefined;
}

/** One delivery of one message. */
interface Handle {
  readonly topic: string;
  readonly stored: Stored;
  readonly connection: Connection;
  endsAt: number;
}

interface Open {
  readonly topic: string;
  readonly queue: QueueName;
  readonly listener: IntakeListener<Handle>;
  credit: number;
}

interface Connection {
  readonly opens: Open[];
  isDead: boolean;
}

export interface CarrierTraits {
  /** The server keeps a message for this long; without it, as long as the connection lives. */
  readonly holdMs?: number;
  /** The server takes back what came too early. Otherwise it delivers delayed messages at once. */
  readonly later?: boolean;
  /** The server knows a message that is sent again. */
  readonly deduplicates?: boolean;
  /** Called before a call changes something, and before its answer is on the way. A throw loses the call, or the answer. */
  readonly fault?: (call: FaultCall, phase: 'before' | 'after') => void;
}

export type FaultCall = 'send' | 'done' | 'keep' | 'release' | 'look';

/** A message broker in memory. Several carriers on one server behave like several processes. */
export class MessageServer {
  readonly clock: Clock;
  readonly #topics = new Map<string, { settings: TopicSettings; messages: Stored[]; log: Stored[] }>();
  readonly #connections = new Set<Connection>();
  readonly #timer: Timer;
  #sequence = 0;

  constructor(clock: Clock) {
    this.clock = clock;
    this.#timer = new Timer(clock, () => this.deliver());
  }

  /** The messages of a topic that are not done. */
  messages(topic: string): { readonly queue: QueueName; readonly message: Message }[] {
    return this.#topics.get(topic)?.messages ?? [];
  }

  /** The process dies: it does not say so, and hears nothing more. */
  kill(carrier: Carrier<unknown>): void {
    const connection = connections.get(carrier)!;
    connection.isDead = true;
    this.#connections.delete(connection);
    for (const stored of this.#all()) {
      if (stored.delivery?.connection === connection && stored.delivery.endsAt === Infinity)
        stored.delivery = undefined;
    }
  }

  /** The server closes the channel of a process, which is told, and delivers its messages again. */
  revoke(carrier: Carrier<unknown>): void {
    const connection = connections.get(carrier)!;
    const lost = this.#all().filter(({ delivery }) => delivery?.connection === connection);
    const handles = lost.map(({ delivery }) => delivery!);
    for (const stored of lost) stored.delivery = undefined;
    for (const { topic, queue, listener } of connection.opens)
      listener.lost(handles.filter((handle) => handle.topic === topic && handle.stored.queue === queue));
  }

  /** Delivers what there is, within the credit of each connection. */
  deliver(only?: Open): void {
    const now = this.clock.now();
    for (const connection of this.#connections) {
      for (const open of connection.opens) {
        if (only !== undefined && open !== only) continue;
        const arrived = this.#next(open, connection, now);
        if (arrived.length > 0) open.listener.arrived(arrived);
      }
    }
    const times = this.#all().map(({ dueAt, delivery }) => Math.max(dueAt, delivery?.endsAt ?? 0));
    const next = Math.min(...times.filter((time) => time > now), Infinity);
    if (next < Infinity) this.#timer.setAt(next);
  }

  #next(open: Open, connection: Connection, now: number): Arrival<Handle>[] {
    const arrived: Arrival<Handle>[] = [];
    const holdMs = holds.get(connection) ?? Infinity;
    for (const stored of this.#topics.get(open.topic)?.messages ?? []) {
      if (open.credit <= 0) break;
      if (stored.queue !== open.queue || stored.dueAt > now || (stored.delivery?.endsAt ?? 0) > now) continue;
      open.credit -= 1;
      const handle = { topic: open.topic, stored, connection, endsAt: now + holdMs };
      stored.delivery = handle;
      arrived.push({ ...arrivalOf(open.topic, stored), handle, askedAt: now });
    }
    return arrived;
  }

  #all(): Stored[] {
    return Array.from(this.#topics.values(), ({ messages }) => messages).flat();
  }

  connect(traits: CarrierTraits = {}): Carrier<Handle> {
    const { holdMs, fault = () => {} } = traits;
    const { clock } = this;
    const connection: Connection = { opens: [], isDead: false };
    this.#connections.add(connection);
    holds.set(connection, holdMs ?? Infinity);
    const alive = (call: FaultCall, phase: 'before' | 'after') => {
      if (connection.isDead) throw new Error('the process has died');
      fault(call, phase);
    };
    const isHeld = (handle: Handle) => handle.stored.delivery === handle || holdMs !== undefined;
    const soon = () => queueMicrotask(() => this.deliver());
    const carrier: Carrier<Handle> = {
      name: 'memory',
      limits: defaultSizeLimits,
      features: { arrivalOrder: true, anyDelay: missing('what is due first may come last'), durable: true },
      tells: { key: false, time: true },
      holdMs,

      ensure: async (topic, { ordering, keepSettledMs }) => {
        const known = this.#topics.get(topic) ?? {
          ...{ settings: { ordering: 'none' as const, keepSettledMs: 0 }, messages: [], log: [] },
        };
        known.settings = {
          ordering: ordering ?? known.settings.ordering,
          keepSettledMs: keepSettledMs ?? known.settings.keepSettledMs,
        };
        this.#topics.set(topic, known);
        return known.settings;
      },
      has: async (topic) => this.#topics.has(topic),
      topics: async () => [...this.#topics.keys()],

      send: async (topic, queue, messages) => {
        alive('send', 'before');
        const { messages: stored, log } = this.#topics.get(topic)!;
        const duplicates: number[] = [];
        for (const [index, message] of messages.entries()) {
          const isKnown = log.some(
            (other) => other.message.dedupId === message.dedupId && other.queue === queue,
          );
          if (traits.deduplicates && isKnown) {
            duplicates.push(index);
            continue;
          }
          const dueAt = traits.later ? 0 : this.clock.now() + message.delayMs;
          const sequence = ++this.#sequence;
          const made: Stored = {
            sequence,
            message,
            at: this.clock.epochMs(),
            queue,
            dueAt,
            delivery: undefined,
          };
          stored.push(made);
          log.push(made);
        }
        soon();
        alive('send', 'after');
        return duplicates;
      },

      open: (topic, queue, listener) => {
        const open: Open = { topic, queue, listener, credit: 0 };
        connection.opens.push(open);
        return {
          credit(count) {
            open.credit = count;
            soon();
          },
          look: async () => {
            alive('look', 'before');
            this.deliver(open);
          },
        };
      },

      done: async (handles) => {
        alive('done', 'before');
        const answers = handles.map((handle) => {
          if (!isHeld(handle)) return false;
          const topic = this.#topics.get(handle.topic)!;
          topic.messages = topic.messages.filter((stored) => stored !== handle.stored);
          return true;
        });
        soon();
        alive('done', 'after');
        return answers;
      },

      release: async (handles) => {
        alive('release', 'before');
        for (const handle of handles) if (isHeld(handle)) handle.stored.delivery = undefined;
        soon();
      },

      counts: async (topic) => {
        const now = this.clock.now();
        const isDelivered = ({ delivery }: Stored) => (delivery?.endsAt ?? 0) > now;
        const { messages } = this.#topics.get(topic)!;
        const free = messages.filter((stored) => !isDelivered(stored));
        return {
          waiting: free.filter(({ queue }) => queue === 'hot').length,
          delayed: free.filter(({ queue }) => queue === 'retry').length,
          delivered: messages.length - free.length,
        };
      },

      history: async (topic, { limit, cursor = '0', from = 0, to = Infinity }) => {
        const items = this.#topics
          .get(topic)!
          .log.filter(({ queue, at }) => queue === 'hot' && at >= from && at < to)
          .filter(({ sequence }) => sequence > Number(cursor));
        const page = items.slice(0, limit);
        return {
          items: page.map((stored) => arrivalOf(topic, stored)),
          cursor: items.length > limit ? String(page.at(-1)!.sequence) : undefined,
        };
      },

      close: async () => this.kill(carrier),
      ...(holdMs !== undefined && {
        async keep(handles) {
          alive('keep', 'before');
          for (const handle of handles) handle.endsAt = clock.now() + holdMs;
        },
      }),
      ...(traits.later && {
        later: (handle, delayMs) => {
          handle.stored.delivery = undefined;
          handle.stored.dueAt = this.clock.now() + delayMs;
          soon();
        },
      }),
    };
    connections.set(carrier, connection);
    return carrier;
  }
}

const connections = new WeakMap<object, Connection>();
const holds = new WeakMap<Connection, number>();

function arrivalOf(topic: string, { sequence, message, at }: Stored) {
  const { headers, key, payload } = message;
  const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload;
  return { messageId: `${topic}/${sequence}`, headers, payload: bytes, key, at };
}
