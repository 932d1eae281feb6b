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
  /** Returns how many handlers may run at the same time. The number may change at any time. */
  concurrency(): number;
  onBegin(task: Task<T>, now: number): void;
  /** Called when it is decided what happens to an event next. */
  onDecided(task: Task<T>, settlement: Settlement<Tx>): void;
  /** Called when the queue has become shorter, so that more events can be leased. */
  onRoom(): void;
  /**
   * Called when no handler runs and no task is queued. The decided settlements should be sent now, because no more
   * settlements will follow soon.
   */
  onOutOfWork(): void;
}

/**
 * Runs handlers with at most `concurrency()` workers. A worker takes one lane at a time. A lane is a list of leased
 * events of one key, or one event without a key. Per event only its `Task` is allocated, and a promise only if the
 * handler returns one.
 */
export class WorkerPool<T, Tx> {
  readonly #settings: WorkerPoolSettings<T, Tx>;
  readonly #yielder: EventLoopYielder | undefined;
  /** The first task of each lane that no worker has taken. Entries before `#head` have been taken already. */
  #queue: Task<T>[] = [];
  #head = 0;
  /** The number of running workers. A worker is not counted any more if the lease of its task was lost. */
  #workers = 0;
  #running = 0;
  #isOpen = true;
  /** How many events went back to the store without a call of their handler. */
  returned = 0;
  #whenIdle: (() => void) | undefined;

  constructor(settings: WorkerPoolSettings<T, Tx>) {
    this.#settings = settings;
    // Only the system clock needs this: with a virtual clock, nothing else waits for the event loop.
    this.#yielder = settings.clock === systemClock ? new EventLoopYielder(settings.clock) : undefined;
  }

  get running(): number {
    return this.#running;
  }

  /** The number of lanes that wait for a worker. */
  get queued(): number {
    return this.#queue.length - this.#head;
  }

  /** True: no handler runs or is queued. Workers may still wait for the store. */
  get isOutOfWork(): boolean {
    return this.#running === 0 && this.queued === 0;
  }

  get isIdle(): boolean {
    return this.#workers === 0 && this.queued === 0;
  }

  /**
   * Queues tasks, and returns how many lanes are queued. With `ordering: 'key'`, successive tasks of one key form one
   * lane.
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

  /** Gives all queued tasks back to the store. */
  returnQueued(): void {
    const queue = this.#queue;
    const first = this.#head;
    this.#queue = [];
    this.#head = 0;
    for (let index = first; index < queue.length; index++) this.#returnLane(queue[index]);
  }

  /**
   * Call it when the lease of `task` has ended. The result of its handler is ignored, and later tasks of the same lane
   * are returned to the store.
   */
  revoke(task: Task<T>): void {
    if (task.isRunning) {
      this.#running -= 1;
      this.#workerDone();
    }
    this.#returnLane(task.next);
  }

  /** Starts no more handlers. Resolves with true if all workers end within `ms`, otherwise with false. */
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
   * Returns the first task of the next lane. `undefined`: the queue is empty, or there are more workers than
   * `concurrency()` allows.
   */
  #next(): Task<T> | undefined {
    const { gate, clock, concurrency, onRoom } = this.#settings;
    if (this.#head === this.#queue.length || this.#workers > concurrency()) return undefined;
    if (gate.hasDependencies && gate.room(clock.now()) <= this.#running) {
      // A dependency is down. Return the queued events to the store, so that their leases do not expire here and other
      // processes can handle them.
      this.returnQueued();
      return undefined;
    }
    const task = this.#queue[this.#head]!;
    this.#head += 1;
    // The queue may never become empty. So remove taken entries when there are 256 of them.
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
      // During the wait, the lease of the task was lost or the task was returned to the store, with the later tasks of
      // its lane.
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
        // The lease was lost while the handler ran. `revoke` has already stopped counting this worker, so another
        // worker may have started.
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

  /** Tells whether the next event of the same key may be handled now. */
  #letsPass(task: Task<T>, settlement: Settlement<Tx>): boolean | Promise<boolean> {
    const { kind } = settlement;
    if (kind === 'ack' && settlement.commit) {
      // The next handler must see what this event commits, and must not run if the commit fails. So wait for the store.
      const settled = new Promise<boolean>((resolve) => {
        task.whenSettled = resolve;
      });
      // No handler runs, so no more settlements will follow soon: send the pending settlements now.
      if (this.#running === 0) this.#settings.onOutOfWork();
      return settled;
    }
    return (
      kind === 'ack' || kind === 'discard' || kind === 'reroute' || (kind === 'park' && !settlement.holdsKey)
    );
  }

  /** Gives `head` and the later tasks of its lane back to the store. Tasks that have started are not given back. */
  #returnLane(head: Task<T> | undefined): void {
    for (let task = head; task; task = task.next) {
      if (task.phase === WAITING) {
        this.returned += 1;
        this.#settings.onDecided(task, { lease: task.delivery.lease, kind: 'return' });
      }
    }
  }

  /** True if the handler threw because `stop()` aborted its signal. */
  #wasStopped(task: Task<T>): boolean {
    return !this.#isOpen && task.signal.reason instanceof ConsumerStoppedError;
  }

  #workerDone(): void {
    this.#workers -= 1;
    if (this.#workers === 0) this.#whenIdle?.();
  }
}

/** How many taken entries the queue may contain before they are removed. */
const takenMax = 256;

function isThenable(given: unknown): given is PromiseLike<unknown> {
  return (
    typeof given === 'object' && given !== null && typeof (given as { then?: unknown }).then === 'function'
  );
}
