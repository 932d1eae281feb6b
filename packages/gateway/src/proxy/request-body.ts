import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

/** What has become of a request body. */
export interface BodyReceiver {
  /** The whole body, short enough to be kept for a retry. */
  bodyKept(body: Buffer): void;
  /** The body is too long to be kept, or its length is unknown and more than that has come. */
  bodyStreams(source: StreamedBody): void;
  /** The body is longer than the route takes. */
  bodyTooLong(): void;
  /** The client closed the connection before the end of its body. */
  bodyBroken(): void;
}

/** Reads the body of a request, up to the size that is kept for a retry. Longer bodies are streamed. */
export function readBody(
  request: IncomingMessage,
  contentLength: number,
  keptMax: number,
  bytesMax: number,
  receiver: BodyReceiver,
): void {
  if (contentLength > bytesMax) {
    receiver.bodyTooLong();
    return;
  }
  if (contentLength > keptMax) {
    receiver.bodyStreams(new StreamedBody(request, [], bytesMax, receiver));
    return;
  }
  const chunks: Buffer[] = [];
  let length = 0;
  const stop = () => request.off('data', onData).off('end', onEnd).off('close', onClose);
  const onData = (chunk: Buffer) => {
    length += chunk.length;
    chunks.push(chunk);
    if (length > bytesMax) {
      stop();
      request.pause();
      receiver.bodyTooLong();
    } else if (length > keptMax) {
      stop();
      request.pause();
      receiver.bodyStreams(new StreamedBody(request, chunks, bytesMax, receiver));
    }
  };
  const onEnd = () => {
    stop();
    receiver.bodyKept(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length));
  };
  const onClose = () => {
    stop();
    receiver.bodyBroken();
  };
  request.on('data', onData).on('end', onEnd).on('close', onClose);
}

/**
 * A body that is passed on while it arrives. It can be sent once: as soon as a byte was read for an attempt, there is no
 * other attempt.
 */
export class StreamedBody {
  readonly #request: IncomingMessage;
  readonly #first: readonly Buffer[];
  readonly #bytesMax: number;
  readonly #receiver: BodyReceiver;
  /** A byte was handed to an attempt. */
  hasStarted = false;

  constructor(request: IncomingMessage, first: readonly Buffer[], bytesMax: number, receiver: BodyReceiver) {
    this.#request = request;
    this.#first = first;
    this.#bytesMax = bytesMax;
    this.#receiver = receiver;
  }

  /** The stream of one attempt. Destroying it leaves the request of the client open, so that it gets a response. */
  stream(): Readable {
    const request = this.#request;
    const bytesMax = this.#bytesMax;
    const receiver = this.#receiver;
    const first = [...this.#first];
    let length = 0;
    let isReading = false;
    const started = () => {
      this.hasStarted = true;
    };
    const readable = new Readable({
      read() {
        started();
        const chunk = first.shift();
        if (chunk) {
          length += chunk.length;
          this.push(chunk);
        } else if (isReading) request.resume();
        else {
          isReading = true;
          // It was paused when its first bytes were too many to be kept.
          request.on('data', onData).on('end', onEnd).on('close', onClose).resume();
        }
      },
      destroy(error, callback) {
        stop();
        callback(error);
      },
    });
    const stop = () => request.off('data', onData).off('end', onEnd).off('close', onClose);
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length > bytesMax) {
        stop();
        request.pause();
        receiver.bodyTooLong();
      } else if (!readable.push(chunk)) request.pause();
    };
    const onEnd = () => {
      stop();
      readable.push(null);
    };
    const onClose = () => {
      stop();
      readable.destroy(new Error('the client ended its request'));
      receiver.bodyBroken();
    };
    return readable;
  }
}
