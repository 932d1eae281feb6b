import type { Socket } from 'node:net';
import { Alarm, type Clock } from 'holdfast';

/** What may be held back in one direction before its sender is made to wait. */
const heldMaxBytes = 1024 * 1024;
/** Slow bytes come in slices of a fiftieth of a second, so that they trickle rather than stutter. */
const slicesPerSecond = 50;

/** What one direction does to the bytes of the current exchange. */
export interface LaneFault {
  readonly delayMs: number;
  readonly bytesPerSecond: number;
  /** Bytes go nowhere. */
  readonly swallows: boolean;
  /** How many bytes pass before it breaks; Infinity: all of them. */
  readonly bytesMax: number;
  /** How it breaks. */
  readonly onBreak: () => void;
}

interface Held {
  /** Bytes to pass on; or what to do when it is their turn. */
  bytes: Buffer | (() => void);
  readonly dueAt: number;
}

const nothing = Buffer.alloc(0);

/** One direction of a connection: what comes from one socket goes to the other, as the fault of the moment allows. */
export class Lane extends Alarm {
  readonly #clock: Clock;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #onPassed: (bytes: number) => void;
  #fault: LaneFault | undefined;
  #bytesLeft = Infinity;
  #held: Held[] = [];
  #heldBytes = 0;
  /** When the slice at the head has taken its time; undefined while none has begun. */
  #readyAt: number | undefined;
  #freeAt = 0;
  #isBlocked = false;
  #isClosed = false;
  /** Whether bytes were lost here, so that what follows would make no sense. */
  hasSwallowed = false;

  constructor(clock: Clock, from: Socket, to: Socket, onPassed: (bytes: number) => void) {
    super();
    this.#clock = clock;
    this.#from = from;
    this.#to = to;
    this.#onPassed = onPassed;
    to.on('drain', () => {
      this.#isBlocked = false;
      this.#pump();
      this.#press();
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether what comes goes nowhere. */
  get isHanging(): boolean {
    return this.hasSwallowed || this.#fault?.swallows === true;
  }

  /** From the next byte on; what is held back already goes as it was meant to. */
  suffer(fault: LaneFault | undefined): void {
    this.#fault = fault;
    this.#bytesLeft = fault?.bytesMax ?? Infinity;
  }

  push(bytes: Buffer): void {
    if (this.#isClosed) return;
    const fault = this.#fault;
    if (fault?.swallows) {
      this.hasSwallowed = true;
      return;
    }
    if (bytes.length <= this.#bytesLeft) {
      this.#bytesLeft -= bytes.length;
      this.#hold(bytes);
      return;
    }
    const { onBreak } = fault as LaneFault;
    if (this.#bytesLeft > 0) this.#hold(bytes.subarray(0, this.#bytesLeft));
    this.#bytesLeft = 0;
    this.#fault = { ...(fault as LaneFault), swallows: true };
    this.afterwards(onBreak);
  }

  /** Does something when all that was pushed before has been passed on. */
  afterwards(act: () => void): void {
    if (!this.#isClosed) this.#hold(act);
  }

  /** Nothing passes any more, and no alarm is left. */
  close(): void {
    this.#isClosed = true;
    this.#held = [];
    this.#heldBytes = 0;
    this.#clock.clear(this);
    // Whatever else comes is read, so that its end is seen.
    this.#from.resume();
  }

  override ring(): void {
    this.#pump();
    this.#press();
  }

  #hold(bytes: Held['bytes']): void {
    const fault = this.#fault;
    const isQuick = !fault || (fault.delayMs === 0 && fault.bytesPerSecond === Infinity);
    if (isQuick && this.#held.length === 0 && !this.#isBlocked && typeof bytes !== 'function') {
      this.#write(bytes);
    } else {
      const last = this.#held.at(-1)?.dueAt ?? 0;
      const dueAt = isQuick ? last : Math.max(last, this.#clock.now() + fault.delayMs);
      this.#held.push({ bytes, dueAt });
      if (typeof bytes !== 'function') this.#heldBytes += bytes.length;
      this.#pump();
    }
    this.#press();
  }

  #pump(): void {
    for (let head = this.#held[0]; head && !this.#isBlocked; head = this.#held[0]) {
      const { bytes } = head;
      if (typeof bytes === 'function') {
        if (this.#waitsUntil(head.dueAt)) return;
        this.#held.shift();
        this.#afterWriting(bytes);
        continue;
      }
      const perSecond = this.#fault?.bytesPerSecond ?? Infinity;
      const size = Math.min(bytes.length, Math.max(1, Math.ceil(perSecond / slicesPerSecond)));
      this.#readyAt ??= Math.max(head.dueAt, this.#freeAt) + (size / perSecond) * 1000;
      if (this.#waitsUntil(this.#readyAt)) return;
      this.#freeAt = this.#readyAt;
      this.#readyAt = undefined;
      this.#heldBytes -= size;
      if (size === bytes.length) this.#held.shift();
      else head.bytes = bytes.subarray(size);
      this.#write(bytes.subarray(0, size));
    }
  }

  #waitsUntil(at: number): boolean {
    if (at <= this.#clock.now()) return false;
    this.#clock.set(this, at);
    return true;
  }

  #write(bytes: Buffer): void {
    if (this.#to.destroyed || this.#to.writableEnded) return;
    this.#onPassed(bytes.length);
    this.#isBlocked = !this.#to.write(bytes);
  }

  /** A reset throws away what the socket has not sent yet, so it waits for that. */
  #afterWriting(act: () => void): void {
    if (this.#to.writableLength === 0 || this.#to.destroyed) act();
    else this.#to.write(nothing, act);
  }

  /** Makes the sender wait while there is too much for the receiver, and lets it go on when there is not. */
  #press(): void {
    if (this.#isClosed) return;
    const isFull = this.#isBlocked || this.#heldBytes >= heldMaxBytes;
    if (isFull !== this.#from.isPaused()) {
      if (isFull) this.#from.pause();
      else this.#from.resume();
    }
  }
}
