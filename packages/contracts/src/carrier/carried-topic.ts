import type { Clock } from 'holdfast';
import type { Leased, LeaseRequest, Ordering } from '../broker.ts';
import type { Controls } from '../controls.ts';
import type { Delivery } from '../envelope.ts';
import type { Entry } from './backlog.ts';
import { movedEvent } from './carried-event.ts';
import type { Carrier } from './carrier.ts';
import { ControlState } from './control-state.ts';
import type { HeldLeases } from './held-leases.ts';
import type { Store } from './store.ts';
import { type IntakeSettings, TopicIntake } from './topic-intake.ts';

export interface CarriedTopicSettings<Handle> extends IntakeSettings<Handle> {
  readonly ordering: Ordering;
  readonly store: Store | undefined;
  readonly controls: Controls;
}

type Answer = { -readonly [Name in keyof Leased]: Name extends 'deliveries' ? Delivery[] : Leased[Name] };

/**
 * The share of each lease that is reserved for events of the store (an engine beside the message broker),
 * from 0 to 1.
 */
const storeShare = 0.5;

/**
 * Leases the events of one topic: those that the server has delivered to this process, and those in the store
 * (an engine beside the message broker).
 */
export class CarriedTopic<Handle> {
  readonly intake: TopicIntake<Handle>;
  readonly controlState: ControlState;
  readonly ordering: Ordering;
  readonly #name: string;
  readonly #carrier: Carrier<Handle>;
  readonly #clock: Clock;
  readonly #leases: HeldLeases<Handle>;
  readonly #store: Store | undefined;
  /** The last lease call. The next call waits for it; otherwise both could take the same event. */
  #last: Promise<unknown> = Promise.resolve();
  #storeIsNext = false;

  constructor(settings: CarriedTopicSettings<Handle>) {
    this.#name = settings.topic;
    this.#carrier = settings.carrier;
    this.#clock = settings.clock;
    this.#leases = settings.leases;
    this.#store = settings.store;
    this.ordering = settings.ordering;
    this.intake = new TopicIntake(settings);
    this.intake.backlog.hasKeyOrder = settings.ordering === 'key';
    this.controlState = new ControlState(settings.controls, settings.topic);
  }

  lease(request: LeaseRequest): Promise<Leased> {
    const leased = this.#last.then(() => this.#lease(request));
    this.#last = leased.catch(() => {});
    return leased;
  }

  async #lease(request: LeaseRequest): Promise<Leased> {
    const { intake, controlState } = this;
    const { limit, suspects = false } = request;
    intake.endLeases();
    if (!this.#store) await controlState.read();
    if (!suspects && !controlState.isPaused) await intake.fill(limit);
    const stored = await this.#leaseStored(request, suspects ? limit : this.#storeLimit(request));
    const leased = { deliveries: [...(stored?.deliveries ?? [])], suspects: stored?.suspects ?? 0 };
    const answer = {
      ...leased,
      nextDueInMs: stored?.nextDueInMs,
      controlsVersion: stored?.controlsVersion ?? 0,
    };
    try {
      await this.#addCarried(request, answer);
    } catch (error) {
      // Return the events that the store has leased, although another part of the call has failed. Otherwise
      // their leases would expire unused.
      if (answer.deliveries.length === 0) throw error;
      answer.nextDueInMs = 0;
    }
    return answer;
  }

  async #addCarried(request: LeaseRequest, answer: Answer): Promise<void> {
    const { intake, controlState } = this;
    const { limit, suspects = false } = request;
    if (this.#store) await controlState.read(answer.controlsVersion);
    answer.controlsVersion = controlState.version;
    if (intake.isPaused !== controlState.isPaused) {
      intake.isPaused = controlState.isPaused;
      intake.updateCredit();
      if (!intake.isPaused && !suspects) await intake.fill(limit);
    }
    if (suspects || controlState.isPaused) return;
    const hasMoved = await this.#leaseCarried(request, answer.deliveries);
    // An event that has just moved into the store may be due there, so lease from the store again.
    if (hasMoved && answer.deliveries.length < limit) {
      const more = await this.#leaseStored(request, limit - answer.deliveries.length);
      answer.deliveries.push(...(more?.deliveries ?? []));
      answer.suspects = more?.suspects ?? 0;
      answer.nextDueInMs = more?.nextDueInMs;
    }
    if (!controlState.retriesArePaused) answer.nextDueInMs = earliest(answer.nextDueInMs, intake.nextDueInMs);
    if (this.#hasMore()) answer.nextDueInMs = 0;
    intake.updateCredit();
  }

  giveBack(entry: Entry<Handle>): void {
    this.#leases.end(entry);
    this.intake.backlog.putBack(entry);
    this.intake.ring();
  }

  async #leaseStored(request: LeaseRequest, limit: number): Promise<Leased | undefined> {
    return this.#store?.broker.lease(this.#name, { ...request, limit });
  }

  /**
   * Returns how many events of a lease may come from the store (an engine beside the message broker). The
   * rest are first attempts that wait in this process.
   */
  #storeLimit({ limit, retriesShare = storeShare }: LeaseRequest): number {
    const ready = this.intake.backlog.readyIn('hot');
    if (limit <= 1) {
      // One event cannot be divided, so the store and this process take turns.
      this.#storeIsNext = !this.#storeIsNext;
      return ready === 0 || this.#storeIsNext ? limit : 0;
    }
    return limit - Math.min(ready, limit - reservedOf(limit, retriesShare));
  }

  async #leaseCarried(request: LeaseRequest, given: Delivery[]): Promise<boolean> {
    const bytesLeft =
      (request.bytesMax ?? Infinity) - given.reduce((sum, { payload }) => sum + payload.length, 0);
    const chosen: Entry<Handle>[] = [];
    let hasMoved = false;
    try {
      for (;;) {
        const left = request.limit - given.length - chosen.length;
        const taken = left > 0 ? this.#take(left, request) : [];
        if (taken.length === 0) break;
        const kept = await this.#moveToStore(taken);
        hasMoved ||= kept.length < taken.length;
        chosen.push(...kept);
      }
    } catch (error) {
      for (const entry of chosen) this.intake.backlog.putBack(entry);
      throw error;
    }
    const count = countWithin(chosen, bytesLeft, given.length > 0);
    for (let index = count; index < chosen.length; index++) this.intake.backlog.putBack(chosen[index]!);
    const endsAt = this.#clock.now() + request.leaseMs;
    if (count > 0) this.intake.checkAt(endsAt);
    for (let index = 0; index < count; index++) given.push(this.#deliver(chosen[index]!, endsAt));
    return hasMoved;
  }

  /**
   * Takes events from the backlog. A share of them are retries. If the queue of the retries or that of the
   * first attempts has too few events, the other queue fills the gap.
   */
  #take(left: number, { runMax = 1, retriesShare = storeShare }: LeaseRequest): Entry<Handle>[] {
    const { backlog } = this.intake;
    const skips = ({ event }: Entry<Handle>) => event.attempts > 0 && this.controlState.retriesArePaused;
    const retries = backlog.readyIn('retry');
    const wanted =
      left === 1
        ? Number(this.#storeIsNext)
        : Math.max(reservedOf(left, retriesShare), left - backlog.readyIn('hot'));
    const taken = backlog.take('retry', Math.min(retries, wanted), runMax, skips);
    taken.push(...backlog.take('hot', left - taken.length, runMax, skips));
    if (taken.length < left) taken.push(...backlog.take('retry', left - taken.length, runMax, skips));
    return taken;
  }

  /**
   * Moves events that cannot be leased yet into the store, and returns the others. They are stored before
   * they are acknowledged, so a crash loses none.
   */
  async #moveToStore(taken: readonly Entry<Handle>[]): Promise<readonly Entry<Handle>[]> {
    const store = this.#store;
    const { backlog } = this.intake;
    if (!store) return taken;
    try {
      const now = this.#clock.epochMs();
      const mustMove = ({ event }: Entry<Handle>) => event.dueAt > now || this.controlState.isHeld(event);
      const { held, free } = this.#divide(taken, mustMove);
      const moved = held.length > 0 ? [...held] : [];
      if (held.length > 0)
        await store.broker.publish(
          this.#name,
          held.map(({ event }) => movedEvent(event, now)),
        );
      const keyed = this.ordering === 'key' ? free.filter(({ event }) => event.key !== undefined) : [];
      if (keyed.length > 0) {
        const events = keyed.map(({ event }) => movedEvent(event, now));
        const behind = await store.broker.publishBehind(this.#name, events);
        moved.push(...keyed.filter((_, index) => behind[index]));
      }
      if (moved.length > 0) await this.#carrier.done(moved.map(({ handle }) => handle));
      for (const entry of moved) this.intake.forget(entry);
      const gone = new Set(moved);
      return free.filter((entry) => !gone.has(entry));
    } catch (error) {
      for (const entry of taken) backlog.putBack(entry);
      throw error;
    }
  }

  /**
   * Splits events: those in `held` must move into the store, and those in `free` can be leased. Later events
   * of a held key go back to the backlog.
   */
  #divide(
    taken: readonly Entry<Handle>[],
    mustMove: (entry: Entry<Handle>) => boolean,
  ): { held: Entry<Handle>[]; free: Entry<Handle>[] } {
    const held: Entry<Handle>[] = [];
    const free: Entry<Handle>[] = [];
    const cutKeys = new Set<string>();
    const usedKeys = new Set<string>();
    for (const entry of taken) {
      const key = this.ordering === 'key' ? entry.event.key : undefined;
      if (key !== undefined && cutKeys.has(key)) this.intake.backlog.putBack(entry);
      else if (!mustMove(entry)) {
        free.push(entry);
        if (key !== undefined) usedKeys.add(key);
      } else {
        if (key !== undefined) cutKeys.add(key);
        // An earlier event of this key is leased now, so this event waits in the backlog.
        if (key !== undefined && usedKeys.has(key)) this.intake.backlog.putBack(entry);
        else held.push(entry);
      }
    }
    return { held, free };
  }

  /** This method names every field. It runs for each event, and an object spread would be slower. */
  #deliver(entry: Entry<Handle>, endsAt: number): Delivery {
    const { event } = entry;
    // A parked event has no deadline: a consumer of the dead-letter topic may handle it at any time.
    const expiresAt = event.diagnosis === undefined ? (event.expiresAt ?? Infinity) : Infinity;
    return {
      id: event.id,
      topic: event.topic,
      payload: event.payload,
      type: event.type,
      key: event.key,
      tenant: event.tenant,
      headers: event.headers,
      correlationId: event.correlationId,
      idempotencyKey: event.idempotencyKey,
      originTopic: event.originTopic,
      firstSeenAt: event.firstSeenAt,
      expiresAt: event.expiresAt,
      replay: event.replay,
      attempts: event.attempts,
      snoozes: event.snoozes,
      deaths: event.deaths,
      nextDelayMs: event.nextDelayMs,
      lastError: event.lastError,
      story: event.story,
      diagnosis: event.diagnosis,
      lease: this.#leases.lease(this.#name, entry, endsAt),
      attempt: event.attempts + 1,
      patienceLeftMs: expiresAt === Infinity ? Infinity : Math.max(0, expiresAt - this.#clock.epochMs()),
      suspect: false,
    };
  }

  #hasMore(): boolean {
    const { backlog } = this.intake;
    return (
      backlog.readyIn('hot') > 0 || (backlog.readyIn('retry') > 0 && !this.controlState.retriesArePaused)
    );
  }
}

function reservedOf(limit: number, share: number): number {
  return Math.min(limit - 1, Math.max(1, Math.floor(limit * share)));
}

function earliest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

/**
 * Returns how many of the first `entries` fit into `bytesMax` payload bytes. If the lease has no other
 * events, the result is at least 1.
 */
function countWithin(entries: readonly Entry[], bytesMax: number, hasOthers: boolean): number {
  let bytes = 0;
  const tooMuch = entries.findIndex(({ event }, index) => {
    bytes += event.payload.length;
    return (index > 0 || hasOthers) && bytes > bytesMax;
  });
  return tooMuch < 0 ? entries.length : tooMuch;
}
