import { type Channel, type ChannelModel, connect, IllegalOperationError, type Options } from 'amqplib';
import { type Clock, type Random, sleep, Timer } from 'holdfast';
import { RabbitmqError } from './rabbitmq-errors.ts';

export interface SessionSettings {
  /** The servers of a cluster, tried one after the other. */
  readonly servers: readonly Options.Connect[];
  readonly socket: object;
  readonly clock: Clock;
  readonly random: Random;
  readonly timeoutMs: number;
}

const firstPauseMs = 100;
const pauseMaxMs = 5_000;

/** One connection. The first call opens it. If it is lost, the next call opens a new one. */
export class Session {
  readonly #settings: SessionSettings;
  readonly #closing = new AbortController();
  #opening: Promise<ChannelModel> | undefined;
  #next = 0;
  #blockedBecause: string | undefined;
  #unblocked = Promise.withResolvers<void>();

  constructor(settings: SessionSettings) {
    this.#settings = settings;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Why the server accepts no messages at the moment, such as `low on memory`. */
  get blockedBecause(): string | undefined {
    return this.#blockedBecause;
  }

  /** Returns the open connection, or opens one. Rejects if no server answers. */
  connection(): Promise<ChannelModel> {
    if (this.isClosed)
      return Promise.reject(new RabbitmqError('UNANSWERED', 'the connection to RabbitMQ was closed'));
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** Runs `work` again and again, with longer and longer pauses, until it succeeds or the session is closed. */
  async persist(work: () => Promise<void>): Promise<void> {
    const { clock, random } = this.#settings;
    for (let pauseMs = firstPauseMs; !this.isClosed; pauseMs = Math.min(2 * pauseMs, pauseMaxMs)) {
      try {
        return await work();
      } catch {
        // `work` runs in the background, so its error is ignored. Calls to the engine report their own
        // errors.
        await sleep(clock, pauseMs * (0.5 + random() / 2), this.#closing.signal).catch(() => {});
      }
    }
  }

  /** Runs `work` on a new channel, because the server closes the channel when it refuses a request. */
  async withChannel<T>(work: (channel: Channel) => Promise<T>): Promise<T> {
    const channel = await this.openChannel((connection) => connection.createChannel());
    // The failed call rejects with the same error, so the event can be ignored.
    channel.on('error', () => {});
    try {
      return await this.within('answer', work(channel));
    } finally {
      await this.end(channel);
    }
  }

  async openChannel<C extends Channel>(open: (connection: ChannelModel) => Promise<C>): Promise<C> {
    const opening = this.connection();
    const connection = await opening;
    try {
      return await this.within('open a channel', open(connection));
    } catch (error) {
      // The server may close a new connection before `#watch` listens.
      if (error instanceof IllegalOperationError && this.#opening === opening) this.#opening = undefined;
      throw error;
    }
  }

  /** Closes a channel or a connection. Resolves also if the server does not answer. */
  async end(open: Channel | ChannelModel): Promise<void> {
    // If the connection is lost before the answer, the promise of the client library never settles.
    const isClosed = new Promise<void>((resolve) => void open.once('close', resolve));
    const isAnswered = open.close().catch(() => {});
    await this.within('close', Promise.race([isAnswered, isClosed])).catch(() => {});
  }

  /** Rejects if `asked` is not settled within the timeout. `what` is the verb of the error message. */
  within<T>(what: string, asked: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#settings;
    return new Promise((resolve, reject) => {
      const timer = new Timer(clock, () =>
        reject(new RabbitmqError('UNANSWERED', `RabbitMQ did not ${what} within ${timeoutMs} ms`)),
      );
      timer.setIn(timeoutMs);
      asked.finally(() => timer.clear()).then(resolve, reject);
    });
  }

  /** Waits while the server accepts no messages. Rejects after the timeout. */
  async untilUnblocked(): Promise<void> {
    if (this.#blockedBecause === undefined) return;
    await this.within('take messages', this.#unblocked.promise).catch(() => {
      throw this.blockedError();
    });
  }

  blockedError(): RabbitmqError {
    const { timeoutMs } = this.#settings;
    const why = this.#blockedBecause ?? 'unknown';
    return new RabbitmqError(
      'BLOCKED',
      `RabbitMQ took no messages for ${timeoutMs} ms, because of an alarm (${why}): free memory or disk on the server, or let consumers catch up`,
    );
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const connection = await this.#opening?.catch(() => undefined);
    if (connection) await this.end(connection);
  }

  async #open(): Promise<ChannelModel> {
    const { servers, socket, timeoutMs } = this.#settings;
    const errors: unknown[] = [];
    for (let tried = 0; tried < servers.length; tried++) {
      const server = servers[this.#next++ % servers.length]!;
      try {
        const made = await connect(server, { noDelay: true, timeout: timeoutMs, ...socket });
        this.#watch(made);
        if (this.isClosed) await this.end(made);
        return made;
      } catch (error) {
        errors.push(error);
      }
    }
    const cause = errors.at(-1);
    const why = cause instanceof AggregateError ? cause.errors[0] : cause;
    const places = servers.map(({ hostname, port }) => `${hostname}:${port}`).join(', ');
    throw new RabbitmqError(
      'UNANSWERED',
      `no connection to RabbitMQ at ${places}: ${why instanceof Error ? why.message : String(why)}`,
      { cause },
    );
  }

  #watch(connection: ChannelModel): void {
    // The event `close` follows each error, and is handled below.
    connection.on('error', () => {});
    connection.on('close', () => {
      this.#opening = undefined;
      this.#setBlocked(undefined);
    });
    connection.on('blocked', (reason) => this.#setBlocked(String(reason)));
    connection.on('unblocked', () => this.#setBlocked(undefined));
  }

  #setBlocked(reason: string | undefined): void {
    this.#blockedBecause = reason;
    this.#unblocked.resolve();
    if (reason !== undefined) this.#unblocked = Promise.withResolvers();
  }
}
