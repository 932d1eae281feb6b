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
  /** How many handlers may run at the same time. The number may change at any time. */
  concurrency(): number;
  onBegin(task: Task<T>, now: number): void;
  /** Called when it is decided how the event is settled, for example acknowledged or retried. */
  onDecided(task: Task<T>, settlement: Settlement<Tx>): void;
  /** Called when more events can be leased. */
  onRoom(): void;
  /**
   * Called when no handler runs and no event is queued. The results should be sent to the store now, because
   * no more will follow soon.
   */
  onOutOfWork(): void;
}

/**
 * Runs handlers with at most `concurrency()` workers. A worker takes one lane from the queue at a time. A
 * lane is one event, or successive events of one key.
 */
export class WorkerPool<T, Tx> {
  readonly #settings: WorkerPoolSettings<T, Tx>;
  readonly #yielder: EventLoopYielder | undefined;
  /**
   * The first task of each lane (one event, or successive events of one key). Workers have already taken the
   * tasks before the index `#head`.
   */
  #queue: Task<T>[] = [];
  #head = 0;
  /**
   * The number of workers. A worker is not counted if the lease of its task was lost: its handler still runs,
   * but its result is ignored.
   */
  #workers = 0;
  #running = 0;
  #isOpen = true;
  /** How many leased events went back to the store unhandled. */
  returned = 0;
  #whenIdle: (() => void) | undefined;

  constructor(settings: WorkerPoolSettings<T, Tx>) {
    this.#settings = settings;
    // Yield only with the system clock. A virtual clock (in tests) does not depend on the event loop.
    this.#yielder = settings.clock === systemClock ? new EventLoopYielder(settings.clock) : undefined;
  }

  get running(): number {
    return this.#running;
  }

  /** How many lanes wait for a worker. A lane is one event, or successive events of one key. */
  get queued(): number {
    return this.#queue.length - this.#head;
  }

  /** True: no handler runs and no event is queued. A worker may still wait for the store. */
  get isOutOfWork(): boolean {
    return this.#running === 0 && this.queued === 0;
  }

  get isIdle(): boolean {
    return this.#workers === 0 && this.queued === 0;
  }

  /**
   * Queues tasks. With `ordering: 'key'`, successive tasks of one key form one lane. Returns how many lanes
   * the queue has then; 0 if `tasks` is empty.
   */
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

  returnQueued(): void {
    const queue = this.#queue;
    const first = this.#head;
    this.#queue = [];
    this.#head = 0;
    for (let index = first; index < queue.length; index++) this.#returnLane(queue[index]);
  }

  /** Call it when the lease of `task` has ended. Its handler may continue, but the result is ignored. */
  revoke(task: Task<T>): void {
    if (task.isRunning) {
      this.#running -= 1;
      this.#workerDone();
    }
    this.#returnLane(task.next);
  }

  /**
   * Starts no more handlers, and returns the queued events to the store. Resolves with true if all workers
   * end within `ms`.
   */
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

  /**
   * Returns the first task of the next lane in the queue. `undefined`: the queue is empty, there are too many
   * workers, or a dependency is down.
   */
  #next(): Task<T> | undefined {
    const { gate, clock, concurrency, onRoom } = this.#settings;
    if (this.#head === this.#queue.length || this.#workers > concurrency()) return undefined;
    if (gate.hasDependencies && gate.room(clock.now()) <= this.#running) {
      // A dependency is down. Return the queued events to the store, so that other processes can handle them.
      this.returnQueued();
      return undefined;
    }
    const task = this.#queue[this.#head]!;
    this.#head += 1;
    // The queue may never become empty, so remove the tasks that workers have taken from time to time.
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
      // The lease was lost while this worker waited (for the event loop or an earlier event), or the pool was
      // closed and `#returnLane` has returned the task.
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
        // The lease was lost while the handler ran. `revoke` has already updated the counts.
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

  /** Returns true if the next event of the same key may be handled after this settlement. */
  #letsPass(task: Task<T>, settlement: Settlement<Tx>): boolean | Promise<boolean> {
    const { kind } = settlement;
    if (kind === 'ack' && settlement.commit) {
      // The handler of the next event must see the data that this event commits, so wait until the store has
      // answered.
      const settled = new Promise<boolean>((resolve) => {
        task.whenSettled = resolve;
      });
      // No handler runs, so no other settlement will follow soon. Send this settlement now.
      if (this.#running === 0) this.#settings.onOutOfWork();
      return settled;
    }
    return (
      kind === 'ack' || kind === 'discard' || kind === 'reroute' || (kind === 'park' && !settlement.holdsKey)
    );
  }

  /** Returns a lane (successive events of one key) to the store, except the tasks that have started. */
  #returnLane(head: Task<T> | undefined): void {
    for (let task = head; task; task = task.next) {
      if (task.phase === WAITING) {
        this.returned += 1;
        this.#settings.onDecided(task, { lease: task.delivery.lease, kind: 'return' });
      }
    }
  }

  /** True: the handler failed because `stop()` aborted its signal. */
  #wasStopped(task: Task<T>): boolean {
    return !this.#isOpen && task.signal.reason instanceof ConsumerStoppedError;
  }

  #workerDone(): void {
    this.#workers -= 1;
    if (this.#workers === 0) this.#whenIdle?.();
  }
}

const takenMax = 256;

function isThenable(given: unknown): given is PromiseLike<unknown> {
  return (
    typeof given === 'object' && given !== null && typeof (given as { then?: unknown }).then === 'function'
  );
}
