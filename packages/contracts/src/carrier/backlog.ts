import type { CarriedEvent } from './carried-event.ts';
import type { QueueName } from './carrier.ts';

/** An event that the server has delivered to this process. It is not acknowledged yet. */
export interface Entry<Handle = unknown> {
  readonly handle: Handle;
  readonly messageId: string;
  readonly queue: QueueName;
  readonly event: CarriedEvent;
  readonly order: number;
  /**
   * Until this time of `Clock.now`, this process may use the message. Later, the server may have delivered
   * the message to another process.
   */
  heldUntil: number;
  /** The lease of the event; `undefined`: it is not leased. `endsAt` is a time of `Clock.now`. */
  lease: { readonly token: string; endsAt: number } | undefined;
  /**
   * The settlement (`ack` or `retry`, for example) that was already written under this lease, although the
   * server did not answer the acknowledgement. A repeated settlement is not written again.
   */
  written: string | undefined;
  /**
   * The number of the last `settle` call that settled this event. So a second settlement of the event in the
   * same call is refused.
   */
  settleCall: number;
  lane: Lane<Handle> | undefined;
  /** True: the event was taken from the backlog, and is not settled (acknowledged, for example) yet. */
  isInHand: boolean;
}

/** Events that must be handled one after the other: the events of one key, or the copies of one event. */
export interface Lane<Handle> {
  readonly lanes: Map<string, Lane<Handle>>;
  readonly name: string;
  readonly queue: QueueName;
  readonly waiting: Entry<Handle>[];
  inHand: number;
}

/**
 * The delivered events of one topic, in the order of arrival. An event is taken only after earlier events of
 * its key, and earlier copies of the event, are settled (acknowledged, for example).
 */
export class Backlog<Handle> {
  readonly #ready: Record<QueueName, Set<Lane<Handle>>> = { hot: new Set(), retry: new Set() };
  readonly #byKey = new Map<string, Lane<Handle>>();
  /**
   * The lanes of events without key order, by queue and event id. A retry is in another queue, so it does not
   * count as a copy.
   */
  readonly #byId: Record<QueueName, Map<string, Lane<Handle>>> = { hot: new Map(), retry: new Map() };
  readonly #waiting: Record<QueueName, { events: number; bytes: number }> = {
    hot: { events: 0, bytes: 0 },
    retry: { events: 0, bytes: 0 },
  };
  hasKeyOrder = false;

  get size(): number {
    return this.#waiting.hot.events + this.#waiting.retry.events;
  }

  waitingIn(queue: QueueName): { readonly events: number; readonly bytes: number } {
    return this.#waiting[queue];
  }

  /** Returns how many lanes (events of one key, or copies of one event) have an event that can be taken. */
  readyIn(queue: QueueName): number {
    return this.#ready[queue].size;
  }

  add(entry: Entry<Handle>): void {
    const { queue, event } = entry;
    const key = this.hasKeyOrder ? event.key : undefined;
    const lanes = key === undefined ? this.#byId[queue] : this.#byKey;
    const name = key ?? event.id;
    let lane = lanes.get(name);
    if (!lane) {
      lane = { lanes, name, queue, waiting: [], inHand: 0 };
      lanes.set(name, lane);
    }
    entry.lane = lane;
    this.#enqueue(lane, entry);
  }

  /**
   * Takes at most `limit` events, and at most `runMax` of one key. If `skips` returns true for an event, this
   * event and later events of its key stay in the backlog.
   */
  take(
    queue: QueueName,
    limit: number,
    runMax: number,
    skips: (entry: Entry<Handle>) => boolean,
  ): Entry<Handle>[] {
    const taken: Entry<Handle>[] = [];
    for (const lane of this.#ready[queue]) {
      if (taken.length >= limit) break;
      const most = Math.min(runMax, limit - taken.length);
      const ids = most > 1 && lane.waiting.length > 1 ? new Set<string>() : undefined;
      for (let run = 0; run < most && lane.waiting.length > 0 && !skips(lane.waiting[0]!); run++) {
        if (ids?.has(lane.waiting[0]!.event.id)) break;
        const entry = lane.waiting.shift()!;
        ids?.add(entry.event.id);
        this.#count(entry, -1);
        entry.isInHand = true;
        lane.inHand += 1;
        taken.push(entry);
      }
      this.#place(lane);
    }
    return taken;
  }

  /** Puts a taken event back to its old position. */
  putBack(entry: Entry<Handle>): void {
    const { lane } = entry;
    if (!lane || !entry.isInHand) return;
    this.#letGo(lane, entry);
    this.#enqueue(lane, entry);
  }

  remove(entry: Entry<Handle>): void {
    const { lane } = entry;
    if (!lane) return;
    entry.lane = undefined;
    if (entry.isInHand) this.#letGo(lane, entry);
    else {
      lane.waiting.splice(lane.waiting.indexOf(entry), 1);
      this.#count(entry, -1);
    }
    this.#place(lane);
  }

  #letGo(lane: Lane<Handle>, entry: Entry<Handle>): void {
    entry.isInHand = false;
    lane.inHand -= 1;
  }

  #enqueue(lane: Lane<Handle>, entry: Entry<Handle>): void {
    const { waiting } = lane;
    if (waiting.length === 0 || waiting.at(-1)!.order < entry.order) waiting.push(entry);
    else waiting.splice(waiting.findLastIndex(({ order }) => order < entry.order) + 1, 0, entry);
    this.#count(entry, 1);
    this.#place(lane);
  }

  #place(lane: Lane<Handle>): void {
    const isReady = lane.waiting.length > 0 && lane.inHand === 0;
    if (isReady) this.#ready[lane.queue].add(lane);
    else this.#ready[lane.queue].delete(lane);
    if (lane.waiting.length + lane.inHand === 0) lane.lanes.delete(lane.name);
  }

  #count({ event, queue }: Entry<Handle>, by: 1 | -1): void {
    const waiting = this.#waiting[queue];
    waiting.events += by;
    waiting.bytes += by * event.payload.length;
  }
}
