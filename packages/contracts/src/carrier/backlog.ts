import type { CarriedEvent } from './carried-event.ts';
import type { QueueName } from './carrier.ts';

/** An event that the server has delivered to this process, and that is not done. */
export interface Entry<Handle = unknown> {
  readonly handle: Handle;
  readonly messageId: string;
  readonly queue: QueueName;
  readonly event: CarriedEvent;
  /** Its place in the order of arrival. */
  readonly order: number;
  /** On the scale of `Clock.now`. From then on, the server may have given the message to another process. */
  heldUntil: number;
  /** On the scale of `Clock.now`. */
  lease: { readonly token: string; endsAt: number } | undefined;
  /** What was written under this lease before the server failed to answer. It is not written again. */
  written: string | undefined;
}

/** The events of one key, in their order; or the copies of one event without an order. */
interface Lane<Handle> {
  /** Where the lane is found while it has events. */
  readonly lanes: Map<string, Lane<Handle>>;
  readonly name: string;
  readonly queue: QueueName;
  readonly waiting: Entry<Handle>[];
  readonly inHand: Set<Entry<Handle>>;
}

/**
 * The events in this process, in the order of their arrival. With key order, an event is given only if no earlier event
 * of its key is in hand. Of two copies of an event, the second is given when the first is settled: whether it was
 * handled is asked when it is given.
 */
export class Backlog<Handle> {
  readonly #ready: Record<QueueName, Set<Lane<Handle>>> = { hot: new Set(), retry: new Set() };
  readonly #byKey = new Map<string, Lane<Handle>>();
  /** Without key order. The retry of an event is not a copy of it. */
  readonly #byId: Record<QueueName, Map<string, Lane<Handle>>> = { hot: new Map(), retry: new Map() };
  readonly #laneOf = new Map<Entry<Handle>, Lane<Handle>>();
  /** The events that are not in hand, and the sizes of their payloads. */
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

  entries(): Iterable<Entry<Handle>> {
    return this.#laneOf.keys();
  }

  /** How many keys, or events without an order, can be given from. */
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
      lane = { lanes, name, queue, waiting: [], inHand: new Set() };
      lanes.set(name, lane);
    }
    this.#laneOf.set(entry, lane);
    this.#enqueue(lane, entry);
  }

  /**
   * Takes at most `limit` events in hand, at most `runMax` of one key. An event that is skipped stays, and so do later
   * events of its key. A copy of an event that is taken stays, too.
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
        lane.inHand.add(entry);
        taken.push(entry);
      }
      this.#place(lane);
    }
    return taken;
  }

  /** Puts an event that was in hand back to its place. */
  putBack(entry: Entry<Handle>): void {
    const lane = this.#laneOf.get(entry);
    if (lane?.inHand.delete(entry)) this.#enqueue(lane, entry);
  }

  /** Forgets an event, wherever it is. */
  remove(entry: Entry<Handle>): void {
    const lane = this.#laneOf.get(entry);
    if (!lane) return;
    this.#laneOf.delete(entry);
    if (!lane.inHand.delete(entry)) {
      lane.waiting.splice(lane.waiting.indexOf(entry), 1);
      this.#count(entry, -1);
    }
    this.#place(lane);
  }

  #enqueue(lane: Lane<Handle>, entry: Entry<Handle>): void {
    const after = lane.waiting.findLastIndex(({ order }) => order < entry.order);
    lane.waiting.splice(after + 1, 0, entry);
    this.#count(entry, 1);
    this.#place(lane);
  }

  #place(lane: Lane<Handle>): void {
    const isReady = lane.waiting.length > 0 && lane.inHand.size === 0;
    if (isReady) this.#ready[lane.queue].add(lane);
    else this.#ready[lane.queue].delete(lane);
    if (lane.waiting.length + lane.inHand.size === 0) lane.lanes.delete(lane.name);
  }

  #count({ event, queue }: Entry<Handle>, by: 1 | -1): void {
    const waiting = this.#waiting[queue];
    waiting.events += by;
    waiting.bytes += by * event.payload.length;
  }
}
