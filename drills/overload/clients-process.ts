import net from 'node:net';
import { type ClientsOrder, SLICE_MS, type Slice } from './clients.ts';

/** Callers that do not wait for each other, on sockets of their own, with as little work as can be. */

const TICK_MS = 5;
const TENANTS = 97;
/** As in a pool of connections: a call without a free one waits, and its patience runs. */
const CONNECTIONS_MAX = 512;
/** What was not begun while this process had no turn is not made up for at once: that would be another load. */
const ARREARS_MAX_MS = 20;
const priorities = ['critical', ...Array(15).fill('default'), ...Array(4).fill('sheddable')];
const idle: Connection[] = [];
const waiting: Attempt[] = [];
let connections = 0;

/** What one attempt came to. */
type End = 'served' | 'refused' | 'timedOut';

/** One try of one request. */
class Attempt {
  readonly request: string;
  readonly #timer: NodeJS.Timeout;
  #end: ((end: End) => void) | undefined;
  connection: Connection | undefined;

  constructor(request: string, timeoutMs: number, end: (end: End) => void) {
    this.request = request;
    this.#end = end;
    this.#timer = setTimeout(() => {
      this.settle('timedOut');
      // As clients do: giving up closes the connection.
      this.connection?.hangUp();
    }, timeoutMs);
  }

  get isOver(): boolean {
    return this.#end === undefined;
  }

  settle(how: End): void {
    clearTimeout(this.#timer);
    const end = this.#end;
    this.#end = undefined;
    end?.(how);
  }
}

class Connection {
  readonly #socket: net.Socket;
  #heard = '';
  #attempt: Attempt | undefined;

  constructor(port: number) {
    connections++;
    this.#socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (chunk: string) => this.#hear(chunk));
    // Lost requests are reported by `close`.
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => {
      connections--;
      this.#attempt?.settle('timedOut');
      this.#attempt = undefined;
      const place = idle.indexOf(this);
      if (place >= 0) idle.splice(place, 1);
      dispatch(port);
    });
  }

  send(attempt: Attempt): void {
    this.#attempt = attempt;
    attempt.connection = this;
    this.#socket.write(attempt.request);
  }

  hangUp(): void {
    this.#socket.destroy();
  }

  #hear(chunk: string): void {
    this.#heard += chunk;
    const head = this.#heard.indexOf('\r\n\r\n');
    if (head < 0) return;
    const [, length = '0'] = /content-length: (\d+)/i.exec(this.#heard) ?? [];
    if (this.#heard.length < head + 4 + Number(length)) return;
    const served = this.#heard.startsWith('HTTP/1.1 2');
    const attempt = this.#attempt;
    this.#heard = '';
    this.#attempt = undefined;
    idle.push(this);
    attempt?.settle(served ? 'served' : 'refused');
    dispatch(this.#socket.remotePort!);
  }
}

function dispatch(port: number): void {
  while (waiting.length > 0) {
    if (idle.length === 0 && connections >= CONNECTIONS_MAX) return;
    const attempt = waiting.shift()!;
    if (!attempt.isOver) (idle.pop() ?? new Connection(port)).send(attempt);
  }
}

process.once('message', (order: ClientsOrder) => {
  const { port, phases, timeoutMs, retrying } = order;
  const slices: Slice[] = [];
  const startedAt = performance.now();
  let begun = 0;
  let due = 0;

  function attempt(priority: string, slice: Slice, tries: number): void {
    const request =
      `GET / HTTP/1.1\r\nhost: a\r\nholdfast: patience=${timeoutMs}, attempt=${tries}, priority=${priority}\r\n` +
      `x-tenant: ${begun % TENANTS}\r\n\r\n`;
    const sentAt = performance.now();
    waiting.push(
      new Attempt(request, timeoutMs, (end) => {
        if (end === 'served') {
          slice.served++;
          if (priority === 'critical') slice.criticalServed++;
          slice.latenciesMs.push(performance.now() - sentAt);
        } else if (retrying && tries === 1) {
          setTimeout(() => attempt(priority, slice, 2), 50 + Math.random() * 100);
        } else if (end === 'refused') slice.refused++;
        else slice.timedOut++;
      }),
    );
    dispatch(port);
  }

  function tick(): void {
    const elapsedMs = performance.now() - startedAt;
    const rate = rateAt(elapsedMs / 1000);
    if (rate === undefined) {
      clearInterval(timer);
      // Until the last of them has been answered or given up.
      setTimeout(() => process.send?.(slices), 3 * timeoutMs);
      return;
    }
    const index = Math.floor(elapsedMs / SLICE_MS);
    slices[index] ??= emptySlice();
    const slice = slices[index];
    due += (rate * Math.min(ARREARS_MAX_MS, elapsedMs - lastMs)) / 1000;
    lastMs = elapsedMs;
    for (; due >= 1; due--) {
      const priority = priorities[begun++ % priorities.length] as string;
      slice.begun++;
      if (priority === 'critical') slice.criticalBegun++;
      attempt(priority, slice, 1);
    }
  }

  function rateAt(second: number): number | undefined {
    let left = second;
    for (const phase of phases) {
      if (left < phase.seconds) return phase.perSecond;
      left -= phase.seconds;
    }
    return undefined;
  }

  let lastMs = 0;
  const timer = setInterval(tick, TICK_MS);
});

function emptySlice(): Slice {
  return {
    begun: 0,
    served: 0,
    criticalBegun: 0,
    criticalServed: 0,
    refused: 0,
    timedOut: 0,
    latenciesMs: [],
  };
}
process.once('disconnect', () => process.exit(0));
