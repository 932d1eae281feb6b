import type { Ordering, Settlement } from '@holdfast/contracts';
import { type Clock, systemClock, withAmbient } from 'holdfast';
import { type StandardSchema, validated } from '../publish/standard-schema.ts';
import { Bell } from './bell.ts';
import type { DependencyGate } from './dependency-gate.ts';
import { ConsumerStoppedError } from './event-errors.ts';
import type { Handler } from './handler.ts';
import type { Judge } from './judge.ts';
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
  /** Handlers at once; may change at any time. */
  concurrency(): number;
  onBegin(task: Task<T>, now: number): void;
  /** What is to become of an event is decided. */
  onDecided(task: Task<T>, settlement: Settlement<Tx>): void;
  /** The queue has become shorter. */
  onRoom(): void;
  /** No handler runs: what has been decided need not wait for more. */
  onOutOfWork(): void;
}

/**
 * Runs handlers: so many workers, each with one lane at a time. Nothing is allocated for an event but its task and what the
 * handler makes; where a handler answers in the same tick no promise is, either.
 */
export class WorkerPool<T, Tx> {
  readonly #settings: WorkerPoolSettings<T, Tx>;
  readonly #yielder: EventLoopYielder | undefined;
  /** Heads of lanes that no worker has begun; those before `#head` are gone. */
  #queue: Task<T>[] = [];
  #head = 0;
  /** One whose event was taken from it is no longer counted. */
  #workers = 0;
  #running = 0;
  #isOpen = true;
  /** Events that were given back unbegun so far. */
  returned = 0;
  #whenIdle: (() => void) | undefined;

  constructor(settings: WorkerPoolSettings<T, Tx>) {
    this.#settings = settings;
    // On virtual time there is no thread to share.
    this.#yielder = settings.clock === systemClock ? new EventLoopYielder(settings.clock) : undefined;
  }

  get running(): number {
    return this.#running;
  }

  /** Lanes that wait for a worker. */
  get queued(): number {
    return this.#queue.length - this.#head;
  }

  /** No handler runs, and none waits to. Workers may wait for the store. */
  get isOutOfWork(): boolean {
    return this.#running === 0 && this.queued === 0;
  }

  get isIdle(): boolean {
    return this.#workers === 0 && this.queued === 0;
  }

  /** Puts events in the queue, and says how many lanes they are: those of one key that came together wait for each other. */
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

  /** Gives back what no worker has begun. */
  returnQueued(): void {
    const queue = this.#queue;
    const first = this.#head;
    this.#queue = [];
    this.#head = 0;
    for (let index = first; index < queue.length; index++) this.#returnLane(queue[index]);
  }

  /** Its lease has ended: nobody here may go on with it, nor with what waits behind it. */
  revoke(task: Task<T>): void {
    if (task.isRunning) {
      this.#running -= 1;
      this.#workerDone();
    }
    this.#returnLane(task.next);
  }

  /** Begins nothing more. True when all workers are gone before `ms` have passed. */
  async close(ms: number): Promise<boolean> {
    this.#isOpen = false;
    this.returnQueued();
    if (this.isOutOfWork) this.#settings.onOutOfWork();
    if (this.#workers === 0) return true;
    return new Promise((resolve) => {
      const late = new Bell(this.#settings.clock, () => resolve(false));
      late.within(ms);
      this.#whenIdle = () => {
        late.clear();
        resolve(true);
      };
    });
  }

  /** The next lane for a worker; `undefined`: there is none, or fewer are to work. */
  #next(): Task<T> | undefined {
    const { gate, clock, concurrency, onRoom } = this.#settings;
    if (this.#head === this.#queue.length || this.#workers > concurrency()) return undefined;
    if (gate.hasDependencies && gate.room(clock.now()) <= this.#running) {
      // In the store others can have them, and nothing is held up by a breaker.
      this.returnQueued();
      return undefined;
    }
    const task = this.#queue[this.#head]!;
    this.#head += 1;
    // With a feed that keeps up it is never empty: what is gone must go all the same.
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
      // Lost while it waited, or given back, and with it what waited behind it.
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
        // It was taken from this worker, who has been replaced.
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
      // The next handler must find what this one commits, and must not run if it does not.
      const settled = new Promise<boolean>((resolve) => {
        task.whenSettled = resolve;
      });
      // Whoever else there is waits for the store as well: it has to be asked now.
      if (this.#running === 0) this.#settings.onOutOfWork();
      return settled;
    }
    return (
      kind === 'ack' || kind === 'discard' || kind === 'reroute' || (kind === 'park' && !settlement.holdsKey)
    );
  }

  /** From `task` on, as if they had never been leased. */
  #returnLane(head: Task<T> | undefined): void {
    for (let task = head; task; task = task.next) {
      if (task.phase === WAITING) {
        this.returned += 1;
        this.#settings.onDecided(task, { lease: task.delivery.lease, kind: 'return' });
      }
    }
  }

  /** It fails because it was asked to. */
  #wasStopped(task: Task<T>): boolean {
    return !this.#isOpen && task.signal.reason instanceof ConsumerStoppedError;
  }

  #workerDone(): void {
    this.#workers -= 1;
    if (this.#workers === 0) this.#whenIdle?.();
  }
}

/** So many places of the queue may be empty before the rest moves up. */
const takenMax = 256;

function isThenable(given: unknown): given is PromiseLike<unknown> {
  return (
    typeof given === 'object' && given !== null && typeof (given as { then?: unknown }).then === 'function'
  );
}
