import type { Duplex } from 'node:stream';
import type { ResponseHeaders } from './upstream-attempt.ts';

/**
 * A client connection that is upgraded to WebSocket. Bytes are copied in both directions until one side
 * closes.
 */
export class Tunnel {
  isConnected = false;
  bytes = 0;
  readonly #client: Duplex;
  readonly #first: Buffer;

  /** `first`: bytes that the client has already sent after its headers. */
  constructor(client: Duplex, first: Buffer) {
    this.#client = client;
    this.#first = first;
  }

  connect(upstream: Duplex, headers: ResponseHeaders, own: readonly string[]): void {
    const client = this.#client;
    this.isConnected = true;
    let head = 'HTTP/1.1 101 Switching Protocols\r\n';
    for (const [name, value] of Object.entries(headers)) {
      for (const each of [value ?? []].flat()) head += `${name}: ${each}\r\n`;
    }
    for (let index = 0; index < own.length; index += 2)
      if (own[index] !== 'connection') head += `${own[index]}: ${own[index + 1]}\r\n`;
    client.write(`${head}\r\n`, 'latin1');
    if (this.#first.length > 0) upstream.write(this.#first);
    upstream.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length;
    });
    const end = () => {
      upstream.destroy();
      client.destroy();
    };
    client.on('error', end).on('close', end);
    upstream.on('error', end).on('close', end);
    // `pipe` also ends the other side, and stops reading while the other side is slow.
    client.pipe(upstream);
    upstream.pipe(client);
  }
}
