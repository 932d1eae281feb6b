import { closeSync, openSync, write } from 'node:fs';
import { type Clock, Timer } from 'holdfast';
import type { AccessRecord } from './access-record.ts';

/** Lines are collected, and written after `flushMs` or when there are `flushBytes` bytes. */
const flushMs = 100;
const flushBytes = 65_536;
/** The most bytes that wait to be written. If the disk is too slow, further lines are dropped and counted. */
const pendingMax = 16 * 1024 * 1024;

/** Writes one line of JSON per request. A request never waits for the log. */
export class AccessLog {
  dropped = 0;
  readonly #descriptor: number;
  readonly #isFile: boolean;
  readonly #timer: Timer;
  #lines = '';
  #writing = false;
  #isClosed = false;

  constructor(to: string | true, clock: Clock) {
    this.#isFile = to !== true;
    this.#descriptor = to === true ? 1 : openSync(to, 'a', 0o640);
    this.#timer = new Timer(clock, () => this.#flush());
  }

  add(record: AccessRecord): void {
    if (this.#isClosed || this.#lines.length > pendingMax) {
      this.dropped++;
      return;
    }
    this.#lines += `${JSON.stringify(record)}\n`;
    if (this.#lines.length >= flushBytes) this.#flush();
    else if (!this.#timer.isSet) this.#timer.setIn(flushMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer.clear();
    while (this.#lines !== '' || this.#writing) await new Promise<void>((resolve) => this.#flush(resolve));
    if (this.#isFile) closeSync(this.#descriptor);
  }

  #flush(done?: () => void): void {
    if (this.#writing || this.#lines === '') {
      if (done) queueMicrotask(done);
      return;
    }
    const bytes = Buffer.from(this.#lines);
    this.#lines = '';
    this.#writing = true;
    this.#write(bytes, 0, done);
  }

  #write(bytes: Buffer, from: number, done: (() => void) | undefined): void {
    write(this.#descriptor, bytes, from, bytes.length - from, null, (error, written) => {
      if (error?.code === 'EAGAIN') return this.#write(bytes, from, done);
      if (!error && from + written < bytes.length) return this.#write(bytes, from + written, done);
      if (error) this.dropped += bytes.subarray(from).toString().split('\n').length - 1;
      this.#writing = false;
      done?.();
      if (this.#lines.length >= flushBytes) this.#flush();
      else if (this.#lines !== '' && !this.#timer.isSet && !this.#isClosed) this.#timer.setIn(flushMs);
    });
  }
}
