import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { Alarm, type Clock, type Random, systemClock } from 'holdfast';
import { assertKnownFields } from 'holdfast/fields';
import { type Address, type HostAndPort, readAddress, showAddress } from './address.ts';
import { chaosOptions, RunningChaos } from './chaos.ts';
import { type ByteCounts, Connection, type Surround } from './connection.ts';
import type { ChaosSpec, FaultKind, FaultSettings } from './spec.ts';
import { isInForce, nextChange } from './strike.ts';

/** The options of `chaosProxy`. Only `upstream` is required. */
export interface ChaosProxyOptions {
  /** The address to listen on. Default: a free port of 127.0.0.1. */
  readonly listen?: Address | undefined;
  /** The address of the server to which connections are forwarded. Required. */
  readonly upstream: Address;
  /** The faults to inject. Default: none. */
  readonly spec?: ChaosSpec | undefined;
  /** The seed of the random numbers, instead of the seed in `spec`. Default: the seed of `spec`. */
  readonly seed?: number | string | undefined;
  /** The clock for faults and delays. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: made from the seed. */
  readonly random?: Random | undefined;
}

const known: Readonly<Record<keyof ChaosProxyOptions, true>> = {
  listen: true,
  upstream: true,
  spec: true,
  seed: true,
  ...chaosOptions,
};

/** The state and the counters of a proxy, as plain data. */
export interface ChaosProxyState {
  readonly listen: string;
  readonly upstream: string;
  /** False: a fault refuses all connections at the moment. */
  readonly listening: boolean;
  readonly spec: ChaosSpec;
  readonly connections: { readonly accepted: number; readonly open: number };
  readonly bytes: Readonly<ByteCounts>;
  readonly exchanges: number;
  /** How many exchanges (a request and its answer) were hit by a fault. */
  readonly struck: number;
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
}

/** A TCP proxy with faults. It runs until `close`. */
export interface ChaosProxy extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  state(): ChaosProxyState;
  /**
   * Replaces the faults, from the next exchange (a request and its answer) on. Resolves when the new faults
   * are active. If `spec` is invalid, rejects with an `OptionsError` and changes nothing.
   */
  set(spec: ChaosSpec): Promise<void>;
  /** Removes all faults. */
  heal(): Promise<void>;
  cut(): void;
  resetCounters(): void;
  /** Closes all connections and stops listening. Resolves when all sockets are closed. */
  close(): Promise<void>;
}

/** Starts a proxy in front of any TCP server. Rejects if it cannot listen. */
export async function chaosProxy(options: ChaosProxyOptions): Promise<ChaosProxy> {
  assertKnownFields(known, options);
  const { listen = 0, upstream, spec = { faults: [] }, seed, clock = systemClock, random } = options;
  const seeded = (given: ChaosSpec) => (seed === undefined ? given : { ...given, seed });
  const chaos = new RunningChaos('proxy', seeded(spec), { clock, random });
  const proxy = new RunningProxy(chaos, clock, readAddress(upstream, 'upstream', 1), seeded);
  await proxy.start(readAddress(listen, 'listen'));
  return proxy;
}

/** The delay (ms) before the proxy tries to listen again, if another process has taken the port. */
const listenAgainMs = 20;

class RunningProxy extends Alarm implements ChaosProxy {
  readonly #chaos: RunningChaos;
  readonly #clock: Clock;
  readonly #upstream: HostAndPort;
  readonly #seeded: (spec: ChaosSpec) => ChaosSpec;
  readonly #server: Server = createServer({ allowHalfOpen: true, noDelay: true });
  readonly #connections = new Set<Connection>();
  readonly #surround: Surround;
  #accepted = 0;
  #bytes: ByteCounts = { fromClient: 0, toUpstream: 0, fromUpstream: 0, toClient: 0 };
  /**
   * Resolves when the current start or stop of listening is done. Starts and stops run one after the other.
   */
  #changing: Promise<void> = Promise.resolve();
  #isRefusing = false;
  #isClosed = false;
  #onEmpty: (() => void) | undefined;
  host = '';
  port = 0;

  constructor(
    chaos: RunningChaos,
    clock: Clock,
    upstream: HostAndPort,
    seeded: (spec: ChaosSpec) => ChaosSpec,
  ) {
    super();
    this.#chaos = chaos;
    this.#clock = clock;
    this.#upstream = upstream;
    this.#seeded = seeded;
    const target = showAddress(upstream);
    this.#surround = {
      clock,
      upstream,
      bytes: this.#bytes,
      strike: (isReused) => chaos.strike({ target, isReused }),
      onClose: (connection) => {
        this.#connections.delete(connection);
        if (this.#connections.size === 0) this.#onEmpty?.();
      },
    };
  }

  /**
   * Starts to listen, even if a fault refuses connections: without listening, the number of a free port is
   * not known.
   */
  async start({ host, port }: HostAndPort): Promise<void> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    this.host = host;
    this.port = (this.#server.address() as AddressInfo).port;
    this.#server.on('connection', (client) => {
      this.#accepted++;
      this.#connections.add(new Connection(this.#surround, client));
    });
    // Listening again after a fault can fail. Ignore that error here: `#listen` tries again later.
    this.#server.on('error', () => {});
    await this.#reconsider();
  }

  state(): ChaosProxyState {
    const { spec, counts } = this.#chaos;
    return {
      listen: showAddress(this),
      upstream: showAddress(this.#upstream),
      listening: this.#server.listening,
      spec,
      connections: { accepted: this.#accepted, open: this.#connections.size },
      bytes: { ...this.#bytes },
      exchanges: counts.subjects,
      struck: counts.struck,
      faults: counts.byKind,
    };
  }

  async set(spec: ChaosSpec): Promise<void> {
    this.#chaos.set(this.#seeded(spec));
    for (const connection of this.#connections) connection.heal();
    await this.#reconsider();
  }

  heal(): Promise<void> {
    return this.set({ faults: [] });
  }

  cut(): void {
    for (const connection of this.#connections) connection.cut();
  }

  resetCounters(): void {
    this.#accepted = 0;
    Object.assign(this.#bytes, { fromClient: 0, toUpstream: 0, fromUpstream: 0, toClient: 0 });
    this.#chaos.resetCounts();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#clock.clear(this);
    await this.#changing;
    const released = this.#server.listening ? once(this.#server, 'close') : undefined;
    this.#server.close();
    for (const connection of this.#connections) connection.destroy();
    if (this.#connections.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onEmpty = resolve;
      });
    }
    await released;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  override ring(): void {
    void this.#reconsider();
  }

  /**
   * Starts or stops listening as the current faults demand, and sets an alarm for the time of the next
   * change.
   */
  #reconsider(): Promise<void> {
    this.#changing = this.#changing.then(async () => {
      if (this.#isClosed) return;
      const { now } = this.#chaos;
      const refusals = this.#chaos.plan.faults.filter(refusesAll);
      const inForce = refusals.filter((fault) => isInForce(fault, now));
      const next = Math.min(...refusals.map((fault) => nextChange(fault, now)));
      if (next < Infinity) this.#clock.set(this, this.#clock.now() + next - now);
      else this.#clock.clear(this);

      if (inForce.length > 0) {
        if (!this.#isRefusing && inForce.some(({ cut }) => cut)) this.cut();
        if (this.#server.listening) this.#server.close();
      } else if (!this.#server.listening) await this.#listen();
      this.#isRefusing = inForce.length > 0;
    });
    return this.#changing;
  }

  async #listen(): Promise<void> {
    try {
      this.#server.listen(this.port, this.host);
      await once(this.#server, 'listening');
    } catch {
      this.#clock.set(this, this.#clock.now() + listenAgainMs);
    }
  }
}

function refusesAll(fault: FaultSettings): fault is FaultSettings<'refuse'> {
  const { kind, rate, first, every, match } = fault;
  return kind === 'refuse' && rate === 1 && first === undefined && every === 1 && match === undefined;
}
