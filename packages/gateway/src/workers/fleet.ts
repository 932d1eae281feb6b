import cluster, { type Worker } from 'node:cluster';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { HoldfastError, sleep, systemClock, Timer } from 'holdfast';
import type { Answers, Command } from '../admin/control.ts';
import type { GatewayConfig } from '../file/gateway-config.ts';

import { Acceptor } from './acceptor.ts';
import type { LostWorker, RunningParts } from './start-gateway.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

/**
 * If a worker dies within this time (ms) after its start, its successor waits for the same time before it
 * starts.
 */
const restartMs = 1000;
const answerMs = 5000;

interface Member {
  readonly worker: Worker;
  readonly startedAt: number;
  readonly pending: Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>;
  /** True: the worker was told to stop, so it is not replaced when it ends. */
  isLeaving: boolean;
  cutOff: number;
}

/** The error code if a worker has ended, or did not answer in time. */
const GONE = 'HOLDFAST_WORKER_GONE';
/** The error code if a worker could not execute a command. */
const REFUSED = 'HOLDFAST_WORKER_REFUSED';

interface FleetOptions {
  readonly prefix: string | undefined;
  readonly onWorkerLost: ((lost: LostWorker) => void) | undefined;
}

/** Several worker processes that share one port. A worker that dies is replaced; the others continue. */
export class Fleet implements RunningParts {
  isDraining = false;
  workersLost = 0;
  address!: AddressInfo;
  readonly #acceptor = new Acceptor();
  readonly #members = new Set<Member>();
  readonly #starting = new Set<Member>();
  /** Commands that force breakers or drain instances, in their order. Each new worker gets them, too. */
  readonly #standing = new Map<string, Command>();
  readonly #workers: number;
  readonly #options: FleetOptions;
  #config: GatewayConfig;
  #nextId = 0;

  private constructor(config: GatewayConfig, workers: number, options: FleetOptions) {
    this.#config = config;
    this.#workers = workers;
    this.#options = options;
  }

  static async start(config: GatewayConfig, workers: number, options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(config, workers, options);
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    cluster.setupPrimary({
      exec: fileURLToPath(new URL(`./worker-process.${extension}`, import.meta.url)),
      // The default is JSON, which can not transfer numbers such as Infinity.
      serialization: 'advanced',
    });
    try {
      await Promise.all(Array.from({ length: workers }, () => fleet.#startWorker()));
      fleet.address = await fleet.#acceptor.listen(config.listen);
    } catch (error) {
      await fleet.close();
      throw error;
    }
    return fleet;
  }

  /**
   * Sends a command to all workers, and returns their answers. A worker that ends meanwhile, or is too slow,
   * gives no answer. If a worker reports an error, the whole call fails.
   */
  async ask<K extends Command['kind']>(
    command: Extract<Command, { kind: K }>,
  ): Promise<readonly Answers[K][]> {
    this.#remember(command);
    const asked = [...this.#members].map((member) => this.#ask(member, command));
    const settled = await Promise.allSettled(asked);
    for (const each of settled)
      if (each.status === 'rejected' && (each.reason as HoldfastError).code === REFUSED) throw each.reason;
    return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value as Answers[K]] : []));
  }

  /** Applies a configuration in all workers. If one worker rejects it, all workers return to the old one. */
  async reload(config: GatewayConfig): Promise<void> {
    const before = this.#config;
    this.#config = config;
    try {
      await this.ask<'reload'>({ kind: 'reload', config });
    } catch (error) {
      this.#config = before;
      await this.ask<'reload'>({ kind: 'reload', config: before });
      throw error;
    }
  }

  /**
   * Replaces all workers one by one. An old worker is stopped only when its successor is ready, so no request
   * fails.
   */
  async restart(): Promise<void> {
    for (const member of [...this.#members]) {
      if (this.isDraining) return;
      await this.#startWorker();
      this.#acceptor.retire(member.worker);
      await this.#stop(member);
    }
  }

  async drain(): Promise<number> {
    this.isDraining = true;
    const members = [...this.#members];
    // Workers that are still starting have no requests, and would stay alive after the others. So kill them.
    const ended = Promise.all([
      ...members.map((member) => this.#stop(member)),
      ...[...this.#starting].map(kill),
    ]);
    // Load balancers may not know of the shutdown yet, so accept connections for `delayMs` more.
    await Promise.race([ended, sleep(systemClock, this.#config.shutdown.delayMs)]);
    this.#acceptor.close();
    await ended;
    return members.reduce((sum, { cutOff }) => sum + cutOff, 0);
  }

  async close(): Promise<void> {
    this.isDraining = true;
    this.#acceptor.close();
    await Promise.all([...this.#members, ...this.#starting].map(kill));
  }

  #startWorker(): Promise<void> {
    const worker = cluster.fork();
    const member: Member = {
      worker,
      startedAt: systemClock.now(),
      pending: new Map(),
      isLeaving: false,
      cutOff: 0,
    };
    this.#starting.add(member);
    return new Promise((resolve, reject) => {
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'failed') reject(new HoldfastError(REFUSED, message.error));
        else if (message.kind === 'drained') member.cutOff = message.cutOff;
        else if (message.kind === 'accepted') this.#acceptor.accepted(worker, message.id);
        else if (message.kind === 'ready') {
          this.#starting.delete(member);
          this.#members.add(member);
          const told = [...this.#standing.values()].map((command) => this.#ask(member, command));
          Promise.allSettled(told).then(() => {
            if (!worker.isDead()) this.#acceptor.add(worker);
            resolve();
          });
        } else {
          const waiting = member.pending.get(message.id);
          member.pending.delete(message.id);
          if (message.kind === 'answer') waiting?.resolve(message.answer);
          else waiting?.reject(new HoldfastError(REFUSED, message.error));
        }
      });
      worker.once('exit', (code, signal) => {
        this.#starting.delete(member);
        this.#members.delete(member);
        this.#acceptor.gone(worker);
        const gone = new HoldfastError(GONE, `a worker ended with ${signal ?? `code ${code}`}`);
        for (const { reject: fail } of member.pending.values()) fail(gone);
        reject(gone);
        if (this.isDraining || member.isLeaving || !this.address) return;
        this.workersLost++;
        this.#options.onWorkerLost?.({ pid: worker.process.pid ?? 0, code, signal });
        void this.#replace(member);
      });
      tell(member, {
        kind: 'start',
        config: this.#config,
        workers: this.#workers,
        prefix: this.#options.prefix,
      });
    });
  }

  async #replace({ startedAt }: Member): Promise<void> {
    // Without this wait, a worker that can not start would be started again and again.
    if (systemClock.now() - startedAt < restartMs) await sleep(systemClock, restartMs);
    // If the new worker fails, its `exit` event starts the next one.
    if (!this.isDraining) await this.#startWorker().catch(() => {});
  }

  #stop(member: Member): Promise<void> {
    const ended = exitOf(member);
    member.isLeaving = true;
    tell(member, { kind: 'stop' });
    return ended;
  }

  #remember(command: Command): void {
    if (command.kind === 'breaker') {
      const key = JSON.stringify(['breaker', command.policy, command.target]);
      // The latest command comes last. `auto` is kept while others stand: it may take back a part of them.
      this.#standing.delete(key);
      const others = [...this.#standing.values()].some(({ kind }) => kind === 'breaker');
      if (command.state !== 'auto' || others) this.#standing.set(key, command);
    } else if (command.kind === 'drain') {
      const key = JSON.stringify(['drain', command.upstream, command.instance]);
      if (command.isDraining) this.#standing.set(key, command);
      else this.#standing.delete(key);
    }
  }

  #ask(member: Member, command: Command): Promise<unknown> {
    const id = ++this.#nextId;
    return new Promise((resolve, reject) => {
      const timer = new Timer(systemClock, () => {
        member.pending.delete(id);
        reject(new HoldfastError(GONE, `a worker did not answer within ${answerMs} ms`));
      });
      timer.setIn(answerMs);
      const settle =
        <T>(end: (value: T) => void) =>
        (value: T) => {
          timer.clear();
          end(value);
        };
      member.pending.set(id, { resolve: settle(resolve), reject: settle(reject) });
      tell(member, { kind: 'command', id, command });
    });
  }
}

function kill(member: Member): Promise<void> {
  const ended = exitOf(member);
  member.worker.process.kill('SIGKILL');
  return ended;
}

function exitOf({ worker }: Member): Promise<void> {
  return new Promise((resolve) => {
    if (worker.isDead()) resolve();
    else worker.once('exit', () => resolve());
  });
}

function tell({ worker }: Member, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message);
}
