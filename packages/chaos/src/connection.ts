import { connect, type Socket } from 'node:net';
import type { Clock } from 'holdfast';
import type { HostAndPort } from './address.ts';
import { Lane } from './lane.ts';
import type { Fault } from './strike.ts';

/** How many bytes the proxy has received from each side and sent to each side. */
export interface ByteCounts {
  fromClient: number;
  toUpstream: number;
  fromUpstream: number;
  toClient: number;
}

export interface Surround {
  readonly clock: Clock;
  readonly upstream: HostAndPort;
  readonly bytes: ByteCounts;
  /**
   * Returns the fault for the exchange (a request and its answer) that begins now. `isReused`: the connection
   * has had an exchange before.
   */
  strike(isReused: boolean): Fault | undefined;
  onClose(connection: Connection): void;
}

/**
 * A client's connection to the proxy, and the proxy's connection to the server for it. A `Lane` handles each
 * direction.
 */
export class Connection {
  readonly #surround: Surround;
  readonly #client: Socket;
  #upstream: Socket | undefined;
  #request: Lane | undefined;
  #response: Lane | undefined;
  /**
   * True: the server has sent bytes, so the next bytes of the client begin a new exchange (request and
   * answer).
   */
  #isAnswered = false;
  #open = 1;

  constructor(surround: Surround, client: Socket) {
    this.#surround = surround;
    this.#client = client;
    this.#keep(client, () => this.cut());
    client.on('end', () => this.#onClientEnd());
    client.on('data', (bytes) => this.#onRequest(bytes));

    const fault = surround.strike(false);
    if (isLostAtOnce(fault)) this.cut();
    else if (!hangsWhole(fault)) {
      this.#connect();
      this.#suffer(fault);
    }
  }

  /** Resets both sockets (client and server). Bytes that are not sent yet are lost. */
  cut(): void {
    this.#close();
    reset(this.#client);
    if (this.#upstream) reset(this.#upstream);
  }

  /**
   * Removes the fault of the current exchange (a request and its answer). If bytes were already dropped, the
   * exchange cannot continue, so the connection is reset.
   */
  heal(): void {
    const isWhole = this.#request && !this.#request.hasSwallowed && !this.#response?.hasSwallowed;
    if (isWhole) this.#suffer(undefined);
    else this.cut();
  }

  destroy(): void {
    this.#close();
    this.#client.destroy();
    this.#upstream?.destroy();
  }

  #connect(): void {
    const { clock, bytes, upstream: to } = this.#surround;
    const client = this.#client;
    const upstream = connect({ ...to, allowHalfOpen: true, noDelay: true });
    this.#upstream = upstream;
    this.#open++;
    const request = new Lane(clock, client, upstream, (count) => {
      bytes.toUpstream += count;
    });
    const response = new Lane(clock, upstream, client, (count) => {
      bytes.toClient += count;
    });
    this.#request = request;
    this.#response = response;
    this.#keep(upstream, () => {
      // Bytes that the server sent before its connection broke are still sent to the client.
      if (!response.isHanging) response.afterwards(() => this.cut());
    });
    upstream.on('close', () => request.close());
    upstream.on('data', (chunk) => this.#onResponse(chunk));
    upstream.on('end', () => {
      if (!response.isHanging) response.afterwards(() => client.end());
    });
  }

  #onRequest(chunk: Buffer): void {
    this.#surround.bytes.fromClient += chunk.length;
    if (this.#isAnswered) {
      this.#isAnswered = false;
      this.#suffer(this.#surround.strike(true));
    }
    this.#request?.push(chunk);
  }

  #onResponse(chunk: Buffer): void {
    this.#surround.bytes.fromUpstream += chunk.length;
    this.#isAnswered = true;
    this.#response?.push(chunk);
  }

  /**
   * Called when the client has ended its side. If the exchange hangs because of a fault, the client has given
   * up, so both sockets are closed.
   */
  #onClientEnd(): void {
    const request = this.#request;
    if (!request || request.isHanging || this.#response?.isHanging) {
      if (!request || request.isClosed) this.destroy();
      else request.afterwards(() => this.destroy());
    } else request.afterwards(() => this.#upstream?.end());
  }

  #suffer(fault: Fault | undefined): void {
    if (fault === undefined) {
      this.#request?.suffer(undefined);
      this.#response?.suffer(undefined);
      return;
    }
    const { ending } = fault;
    const hangs = ending?.kind === 'hang' ? ending.direction : undefined;
    const resets = ending?.kind === 'reset' ? ending : undefined;
    if (isLostAtOnce(fault)) {
      this.cut();
      return;
    }
    const breaksAnswer =
      resets?.direction === 'response' ? resets : ending?.kind === 'truncate' ? ending : undefined;
    this.#request?.suffer({
      delayMs: fault.requestDelayMs,
      bytesPerSecond: fault.requestBytesPerSecond,
      swallows: hangs === 'request' || hangs === 'both',
      bytesMax: resets?.direction === 'request' ? resets.afterBytes : Infinity,
      onBreak: () => this.cut(),
    });
    this.#response?.suffer({
      delayMs: fault.responseDelayMs,
      bytesPerSecond: fault.responseBytesPerSecond,
      swallows: hangs === 'response' || hangs === 'both',
      bytesMax: breaksAnswer?.afterBytes ?? Infinity,
      onBreak: () => (resets ? this.cut() : this.#truncate()),
    });
  }

  /** Ends the answer early. The client sees a normal end of the connection, the server sees a reset. */
  #truncate(): void {
    this.#close();
    this.#client.end();
    if (this.#upstream) reset(this.#upstream);
  }

  #close(): void {
    this.#request?.close();
    this.#response?.close();
  }

  #keep(socket: Socket, onError: () => void): void {
    socket.on('error', onError);
    socket.on('close', () => {
      if (--this.#open === 0) {
        this.#close();
        this.#surround.onClose(this);
      }
    });
  }
}

/**
 * Resets a socket. While a socket is connecting or ending, a reset is impossible, so the socket is destroyed
 * instead.
 */
function reset(socket: Socket): void {
  if (socket.destroyed) return;
  const isEnding = socket.writableEnded && !socket.writableFinished;
  if (socket.connecting || isEnding) socket.destroy();
  else socket.resetAndDestroy();
}

function isLostAtOnce(fault: Fault | undefined): boolean {
  const ending = fault?.ending;
  if (ending?.kind === 'refuse') return true;
  return ending?.kind === 'reset' && ending.direction === 'request' && ending.afterBytes === 0;
}

function hangsWhole(fault: Fault | undefined): boolean {
  return fault?.ending?.kind === 'hang' && fault.ending.direction === 'both';
}
