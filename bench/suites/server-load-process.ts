import net from 'node:net';
import type { Burst } from './server/load.ts';

/** Sends requests on connections that stay open, with as little work of its own as can be. */

const CONNECTIONS = 32;
const body = JSON.stringify({ item: 'book', count: 2, note: 'as a present, please' });
const pools = new Map<number, Connection[]>();
let lastKey = 0;

class Connection {
  readonly #socket: net.Socket;
  #heard = '';
  #answered: ((failure: string | null) => void) | undefined;

  constructor(port: number) {
    this.#socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (chunk: string) => this.#hear(chunk));
    this.#socket.on('error', (error) => this.#answered?.(error.message));
    this.#socket.on('close', () => this.#answered?.('The connection was closed.'));
  }

  send(request: string): Promise<string | null> {
    return new Promise((resolve) => {
      this.#answered = resolve;
      if (this.#socket.destroyed) resolve('The connection was closed while it rested.');
      else this.#socket.write(request);
    });
  }

  #hear(chunk: string): void {
    this.#heard = this.#heard === '' ? chunk : this.#heard + chunk;
    const end = this.#heard.indexOf('\r\n\r\n');
    if (end < 0) return;
    const [, length = '0'] = /content-length: (\d+)/i.exec(this.#heard) ?? [];
    if (this.#heard.length < end + 4 + Number(length)) return;
    const heard = this.#heard;
    this.#heard = '';
    this.#answered?.(heard.startsWith('HTTP/1.1 2') ? null : heard);
  }
}

function requestOf({ kind }: Burst): string {
  if (kind === 'get') return 'GET /orders HTTP/1.1\r\nhost: localhost\r\n\r\n';
  const key = `"${process.pid}-${++lastKey}"`;
  return (
    `POST /orders HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nidempotency-key: ${key}\r\n` +
    `content-length: ${body.length}\r\n\r\n${body}`
  );
}

process.on('message', async (burst: Burst) => {
  let pool = pools.get(burst.port);
  if (!pool) {
    pool = Array.from({ length: CONNECTIONS }, () => new Connection(burst.port));
    pools.set(burst.port, pool);
  }
  let left = burst.times;
  let failure: string | null = null;
  await Promise.all(
    pool.map(async (connection) => {
      while (left-- > 0 && failure === null) failure = await connection.send(requestOf(burst));
    }),
  );
  process.send?.(failure);
});
process.once('disconnect', () => process.exit(0));
process.send?.('ready');
