import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

export interface BodyReceiver {
  /** The whole body was read and is kept in memory for a retry. */
  bodyKept(body: Buffer): void;
  /** The body is too long to keep in memory, so `source` streams it to the upstream. */
  bodyStreams(source: StreamedBody): void;
  bodyTooLong(): void;
  bodyBroken(): void;
}

/**
 * Reads a request body into memory, so that a retry can send it again. Bodies longer than `keptMax` bytes are
 * streamed.
 */
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

/** A body that is sent to the upstream while it arrives. It can be sent only once. */
export class StreamedBody {
  readonly #request: IncomingMessage;
  readonly #first: readonly Buffer[];
  readonly #bytesMax: number;
  readonly #receiver: BodyReceiver;
  hasStarted = false;

  constructor(request: IncomingMessage, first: readonly Buffer[], bytesMax: number, receiver: BodyReceiver) {
    this.#request = request;
    this.#first = first;
    this.#bytesMax = bytesMax;
    this.#receiver = receiver;
  }

  /**
   * Destroying the returned stream does not destroy the client's request, because the client must still get a
   * response.
   */
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
          // `readBody` may have paused the request, and a `data` listener does not resume it.
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
