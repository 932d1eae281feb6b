import {
  connect,
  createInbox,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type NodeConnectionOptions,
} from '@nats-io/transport-node';
import { type Clock, later, Timer } from 'holdfast';
import { NatsError } from './nats-errors.ts';

export interface Request {
  readonly subject: string;
  readonly payload: Uint8Array | string;
  readonly headers?: MsgHdrs;
}

/**
 * One connection. All answers arrive on one inbox subject, because a subscription for each request would be
 * ten times slower.
 */
export class Session {
  readonly #options: NodeConnectionOptions;
  readonly #clock: Clock;
  readonly #waits = new Map<
    number,
    { readonly answers: (Msg | undefined)[]; left: number; resolve(): void }
  >();
  readonly #reconnects = new Set<() => void>();
  readonly #inbox = createInbox();
  #opening: Promise<NatsConnection> | undefined;
  readonly #ticks: Timer;
  #last = 0;
  /**
   * Messages that are read now have arrived after this time, in ms of `Clock.now`. While a process is
   * suspended, messages wait in its socket. The server may meanwhile deliver them to other processes.
   */
  readSince: number;
  isClosed = false;

  constructor(options: NodeConnectionOptions, clock: Clock, tickMs: number) {
    this.#options = options;
    this.#clock = clock;
    this.readSince = clock.now();
    this.#ticks = new Timer(clock, (now) => {
      this.#ticks.setIn(tickMs);
      // Node runs timers first, then reads sockets, and then runs this callback.
      later(() => {
        this.readSince = now;
      });
    });
    this.#ticks.setIn(tickMs);
  }

  connection(): Promise<NatsConnection> {
    if (this.isClosed)
      return Promise.reject(new NatsError('UNANSWERED', 'the connection to NATS was closed'));
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  onReconnect(callback: () => void): void {
    this.#reconnects.add(callback);
  }

  /**
   * Sends requests together, and resolves with their answers. An answer is `undefined` if it did not come in
   * time.
   */
  async askAll(requests: readonly Request[], timeoutMs: number): Promise<readonly (Msg | undefined)[]> {
    if (requests.length === 0) return [];
    const connection = await this.connection();
    const number = ++this.#last;
    const answers: (Msg | undefined)[] = requests.map(() => undefined);
    const { promise: answered, resolve } = Promise.withResolvers<void>();
    const late = new Timer(this.#clock, () => resolve());
    this.#waits.set(number, { answers, left: requests.length, resolve });
    try {
      for (const [index, { subject, payload, headers }] of requests.entries())
        connection.publish(subject, payload, {
          reply: `${this.#inbox}.${number}.${index}`,
          ...(headers && { headers }),
        });
      late.setIn(timeoutMs);
      await answered;
    } finally {
      late.clear();
      this.#waits.delete(number);
    }
    return answers;
  }

  /** Sends a request to the JetStream API. Returns `undefined` if the stream or consumer does not exist. */
  async api<T>(path: string, body: object | undefined, timeoutMs: number): Promise<T | undefined> {
    const payload = body === undefined ? '' : JSON.stringify(body);
    const [answer] = await this.askAll([{ subject: `$JS.API.${path}`, payload }], timeoutMs);
    if (answer === undefined)
      throw new NatsError('UNANSWERED', `NATS did not answer ${path} within ${timeoutMs} ms`);
    if (answer.headers?.code === 503)
      throw new NatsError(
        'REFUSED',
        `NATS has no JetStream: start the server with "jetstream {}", or check the account`,
      );
    const { error, ...result } = answer.json<{ error?: ApiError }>();
    if (error?.code === 404) return undefined;
    if (error)
      throw new NatsError(
        'REFUSED',
        `NATS refused ${path}: ${error.description} (${error.err_code ?? error.code})`,
      );
    return result as T;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.#ticks.clear();
    const connection = await this.#opening?.catch(() => undefined);
    await connection?.close();
  }

  async #open(): Promise<NatsConnection> {
    const connection = await connect(this.#options);
    connection.subscribe(`${this.#inbox}.*.*`, { callback: (_, message) => this.#answered(message) });
    void this.#watch(connection);
    return connection;
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status())
      if (type === 'reconnect') for (const callback of this.#reconnects) callback();
  }

  #answered(message: Msg): void {
    const [number, index] = message.subject.slice(this.#inbox.length + 1).split('.');
    const wait = this.#waits.get(Number(number));
    if (!wait || wait.answers[Number(index)] !== undefined) return;
    wait.answers[Number(index)] = message;
    wait.left -= 1;
    if (wait.left === 0) wait.resolve();
  }
}

interface ApiError {
  readonly code: number;
  readonly err_code?: number;
  readonly description: string;
}
