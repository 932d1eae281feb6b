import type { Socket } from 'node:net';
import { Alarm, type Clock } from 'holdfast';

/** When this many bytes of one direction wait to be sent, the sender is paused. */
const heldMaxBytes = 1024 * 1024;
/** With a speed limit, bytes are sent in this many slices per second, one every 20 ms. */
const slicesPerSecond = 50;

/** The fault of one direction, for the current exchange (a request and its answer). */
export interface LaneFault {
  readonly delayMs: number;
  readonly bytesPerSecond: number;
  /** True: all bytes are dropped, so the other side hangs. */
  readonly swallows: boolean;
  /** The connection breaks after this many bytes. Infinity: it does not break. */
  readonly bytesMax: number;
  readonly onBreak: () => void;
}

interface Held {
  /** Bytes to send, or a function to call when all earlier bytes are sent. */
  bytes: Buffer | (() => void);
  readonly dueAt: number;
}

const nothing = Buffer.alloc(0);

/**
 * One direction of a connection. It sends the bytes of one socket to the other socket, with the current
 * fault.
 */
export class Lane extends Alarm {
  readonly #clock: Clock;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #onPassed: (bytes: number) => void;
  #fault: LaneFault | undefined;
  #bytesLeft = Infinity;
  #held: Held[] = [];
  #heldBytes = 0;
  /** When the next slice of bytes may be sent. `undefined`: no slice waits. */
  #readyAt: number | undefined;
  #freeAt = 0;
  #isBlocked = false;
  #isClosed = false;
  /**
   * True: bytes were dropped. In this case `heal` resets the connection, because later bytes would make no
   * sense.
   */
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

  get isHanging(): boolean {
    return this.hasSwallowed || this.#fault?.swallows === true;
  }

  /**
   * Sets the fault for bytes that arrive from now on. For bytes that already wait to be sent, only the speed
   * limit changes.
   */
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

  /** Calls `act` when all earlier bytes are sent. */
  afterwards(act: () => void): void {
    if (!this.#isClosed) this.#hold(act);
  }

  /** Drops all bytes that wait or arrive later, and clears the alarm. */
  close(): void {
    this.#isClosed = true;
    this.#held = [];
    this.#heldBytes = 0;
    this.#clock.clear(this);
    // Continue to read from the socket, so that its end is noticed.
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

  /**
   * Calls `act` when the socket has sent all bytes. If `act` were called earlier, it could reset the socket,
   * and unsent bytes would be lost.
   */
  #afterWriting(act: () => void): void {
    if (this.#to.writableLength === 0 || this.#to.destroyed) act();
    else this.#to.write(nothing, act);
  }

  /** Pauses the sender while too many bytes wait, and resumes it when they are sent (backpressure). */
  #press(): void {
    if (this.#isClosed) return;
    const isFull = this.#isBlocked || this.#heldBytes >= heldMaxBytes;
    if (isFull !== this.#from.isPaused()) {
      if (isFull) this.#from.pause();
      else this.#from.resume();
    }
  }
}
