import type { Clock } from 'holdfast';
import { pause } from './pause.ts';

export interface BodyFault {
  readonly clock: Clock;
  readonly signal: AbortSignal | null | undefined;
  /** Infinity where it is not slowed. */
  readonly bytesPerSecond: number;
  /** How many bytes pass before it breaks; Infinity: all of them. */
  readonly bytesMax: number;
  /** What the reader is told when it breaks. */
  broken(): Error;
}

/** A slow body comes in slices of a fiftieth of a second, so that it trickles rather than stutters. */
const slicesPerSecond = 50;

/** The same body, slower or broken off. One that ends before `bytesMax` ends well. */
export function faultyBody(
  body: ReadableStream<Uint8Array>,
  { clock, signal, bytesPerSecond, bytesMax, broken }: BodyFault,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const left = new AbortController();
  const leaving = signal ? AbortSignal.any([signal, left.signal]) : left.signal;
  const sliceMax = Math.max(1, Math.ceil(bytesPerSecond / slicesPerSecond));
  let held = new Uint8Array();
  let passed = 0;

  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      // A cancelled stream may not be touched, and an aborted one is told by its signal.
      try {
        while (held.length === 0) {
          const { done, value } = await reader.read();
          if (done) {
            controller.close();
            // A reader that brought its own buffer is waiting for it.
            controller.byobRequest?.respond(0);
            return;
          }
          held = value as Uint8Array<ArrayBuffer>;
        }
        if (passed >= bytesMax) {
          // Whether this succeeds is no concern of the reader's, who is told of the break.
          reader.cancel().catch(() => {});
          controller.error(broken());
          return;
        }
        const slice = held.subarray(0, Math.min(sliceMax, bytesMax - passed));
        if (bytesPerSecond < Infinity) await pause(clock, (slice.length / bytesPerSecond) * 1000, leaving);
        held = held.subarray(slice.length);
        passed += slice.length;
        controller.enqueue(slice.slice());
      } catch (error) {
        if (left.signal.aborted) return;
        reader.cancel(error).catch(() => {});
        controller.error(error);
      }
    },
    cancel(reason) {
      left.abort(reason);
      return reader.cancel(reason);
    },
  });
}
