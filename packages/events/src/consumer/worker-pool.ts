import type { Ordering, Settlement } from '@holdfast/contracts';
import { type Clock, systemClock, Timer, withAmbient } from 'holdfast';
import { type StandardSchema, validated } from '../publish/standard-schema.ts';
import type { DependencyGate } from './dependency-gate.ts';
import { ConsumerStoppedError } from './event-errors.ts';
import type { Judge } from './judge.ts';
import type { Handler } from './task.ts';
import { type Task, WAITING } from './task.ts';
import { EventLoopYielder } from './yield-to-event-loop.ts';

export interface WorkerPoolSettings<T, Tx> {
  readonly name: string;
  readonly clock: Clock;
  readonly handler: Handler<T, Tx>;
  readonly schema: StandardSchema<T> | undefined;
  readonly judge: Judge<Tx>;
  readonly gate: DependencyGate;
  readonly ambient: boolean;
  /** The most handlers at once; may change at any time. */
  concurrency(): number;
  onBegin(task: Task<T>, now: number): void;
  /** The settlement of an event is decided. */
  onDecided(task: Task<T>, settlement: Settlement<Tx>): void;
  /** The queue has become shorter. */
  onRoom(): void;
  /** No handler runs and none is queued: flush decided settlements, because no more will join them soon. */
  onOutOfWork(): void;
}

/**
 * Runs handlers with at most `concurrency()` workers. A worker takes one lane at a time: the leased events of one key, or one
 * event without a key. Per event only its task is allocated; a promise only if the handler returns one.
 */
export class WorkerPool<T, Tx> {
  readonly #settings: WorkerPoolSettings<T, Tx>;
  readonly #yielder: EventLoopYielder | undefined;
  /** First tasks of lanes that no worker has started. Entries before `#head` have been taken. */
  #queue: Task<T>[] = [];
  #head = 0;
  /** Running workers. A worker whose task was revoked is not counted. */
  #workers = 0;
  #running = 0;
  #isOpen = true;
  /** Events returned without having been started, so far. */
  returned = 0;
  #whenIdle: (() => void) | undefined;

  constructor(settings: WorkerPoolSettings<T, Tx>) {
    this.#settings = settings;
    // With a virtual clock nothing else waits for the event loop.
    this.#yielder = settings.clock === systemClock ? new EventLoopYielder(settings.clock) : undefined;
  }

  get running(): number {
    return this.#running;
  }

  /** Lanes that wait for a worker. */
  get queued(): number {
    return this.#queue.length - this.#head;
  }

  /** No handler runs or is queued. Workers may still wait for the store. */
  get isOutOfWork(): boolean {
    return this.#running === 0 && this.queued === 0;
  }

  get isIdle(): boolean {
    return this.#workers === 0 && this.queued === 0;
  }

  /** Queues tasks and returns how many lanes are queued. With `ordering: 'key'`, neighbours of one key share a lane. */
  enqueue(tasks: readonly Task<T>[], ordering: Ordering): number {
    let before: Task<T> | undefined;
    let lanes = 0;
    for (const task of tasks) {
      if (before && ordering === 'key' && task.key !== undefined && task.key === before.key)
        before.next = task;
      else lanes = this.#queue.push(task) - this.#head;
      before = task;
    }
    return lanes;
  }

  startWorkers(): void {
    const free = Math.min(this.#settings.concurrency() - this.#workers, this.queued);
    for (let hired = 0; hired < free; hired++) void this.#work();
  }

  /** Returns all tasks that no worker has started. */
  returnQueued(): void {
    const queue = this.#queue;
    const first = this.#head;
    this.#queue = [];
    this.#head = 0;
    for (let index = first; index < queue.length; index++) this.#returnLane(queue[index]);
  }

  /** The lease of `task` has ended: its result is ignored, and the tasks behind it in its lane are returned. */
  revoke(task: Task<T>): void {
    if (task.isRunning) {
      this.#running -= 1;
      this.#workerDone();
    }
    this.#returnLane(task.next);
  }

  /** Starts no more handlers. Resolves with true when all workers end within `ms`, otherwise with false. */
  async close(ms: number): Promise<boolean> {
    this.#isOpen = false;
    this.returnQueued();
    if (this.isOutOfWork) this.#settings.onOutOfWork();
    if (this.#workers === 0) return true;
    return new Promise((resolve) => {
      const timeout = new Timer(this.#settings.clock, () => resolve(false));
      if (ms < Infinity) timeout.setIn(ms);
      this.#whenIdle = () => {
        timeout.clear();
        resolve(true);
      };
    });
  }

  /** The next lane for a worker. `undefined`: there is none, or there are more workers than `concurrency()`. */
  #next(): Task<T> | undefined {
    const { gate, clock, concurrency, onRoom } = this.#settings;
    if (this.#head === this.#queue.length || this.#workers > concurrency()) return undefined;
    if (gate.hasDependencies && gate.room(clock.now()) <= this.#running) {
      // Return them, so that other processes can handle them and their leases do not wait for the breaker.
      this.returnQueued();
      return undefined;
    }
    const task = this.#queue[this.#head]!;
    this.#head += 1;
    // The queue may never become empty, so drop taken entries at the latest when there are 256.
    if (this.#head === this.#queue.length || this.#head >= takenMax) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    onRoom();
    return task;
  }

  async #work(): Promise<void> {
    const { clock, judge, onBegin, onDecided, onRoom, onOutOfWork } = this.#settings;
    this.#workers += 1;
    let task = this.#next();
    while (task) {
      let now = clock.now();
      if (this.#yielder?.isDue(now)) {
        await this.#yielder.yield();
        now = clock.now();
      }
      if (!this.#isOpen) this.#returnLane(task);
      // The task was revoked or returned meanwhile, together with those behind it.
      if (task.phase !== WAITING) {
        task = this.#next();
        continue;
      }
      let settlement = judge.beforeHandler(task, now);
      if (!settlement) {
        task.begin(now);
        this.#running += 1;
        onBegin(task, now);
        try {
          const given = this.#call(task);
          settlement = judge.answered(task, isThenable(given) ? await given : given);
        } catch (error) {
          settlement = this.#wasStopped(task)
            ? { lease: task.delivery.lease, kind: 'return' }
            : judge.failed(task, error);
        }
        // The task was revoked while the handler ran: another worker has taken the place of this one.
        if (!task.isRunning) return;
        this.#running -= 1;
      }
      onDecided(task, settlement);
      const { next } = task;
      if (!next) task = this.#next();
      else {
        const passes = this.#letsPass(task, settlement);
        if (typeof passes === 'boolean' ? passes : await passes) task = next;
        else {
          this.#returnLane(next);
          task = this.#next();
        }
      }
    }
    this.#workerDone();
    if (this.isOutOfWork) onOutOfWork();
    onRoom();
  }

  #call(task: Task<T>): unknown {
    const { schema } = this.#settings;
    if (!schema) return this.#handle(task);
    const checked = validated(schema, task.payload);
    if (!(checked instanceof Promise)) {
      task.payload = checked;
      return this.#handle(task);
    }
    return checked.then((value) => {
      task.payload = value;
      return this.#handle(task);
    });
  }

  #handle(task: Task<T>): unknown {
    const { ambient, handler } = this.#settings;
    return ambient ? withAmbient(task, () => handler(task)) : handler(task);
  }

  /** Whether the next event of the key may be handled now. */
  #letsPass(task: Task<T>, settlement: Settlement<Tx>): boolean | Promise<boolean> {
    const { kind } = settlement;
    if (kind === 'ack' && settlement.commit) {
      // The next handler must see what this one commits, and must not run if the commit fails.
      const settled = new Promise<boolean>((resolve) => {
        task.whenSettled = resolve;
      });
      // All workers wait for the store: flush now instead of waiting for more settlements.
      if (this.#running === 0) this.#settings.onOutOfWork();
      return settled;
    }
    return (
      kind === 'ack' || kind === 'discard' || kind === 'reroute' || (kind === 'park' && !settlement.holdsKey)
    );
  }

  /** Returns `head` and the tasks behind it that have not started. */
  #returnLane(head: Task<T> | undefined): void {
    for (let task = head; task; task = task.next) {
      if (task.phase === WAITING) {
        this.returned += 1;
        this.#settings.onDecided(task, { lease: task.delivery.lease, kind: 'return' });
      }
    }
  }

  /** True when the handler rejected because `stop()` aborted it. */
  #wasStopped(task: Task<T>): boolean {
    return !this.#isOpen && task.signal.reason instanceof ConsumerStoppedError;
  }

  #workerDone(): void {
    this.#workers -= 1;
    if (this.#workers === 0) this.#whenIdle?.();
  }
}

/** Taken entries that the queue may hold before it is compacted. */
const takenMax = 256;

function isThenable(given: unknown): given is PromiseLike<unknown> {
  return (
    typeof given === 'object' && given !== null && typeof (given as { then?: unknown }).then === 'function'
  );
}
