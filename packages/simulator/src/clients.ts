import type { ClientsSettings } from '@holdfast/config';
import { Alarm, type Random, Timer } from 'holdfast';
import type { Call, Caller, Origin } from './caller.ts';
import { type Sampler, sampler } from './sampling.ts';
import { StreamBank } from './stream-bank.ts';
import type { CallerTally } from './tally.ts';
import { SharedAlarm } from './timeline.ts';
import type { World } from './world.ts';

export interface Clients {
  start(): void;
}

export interface ClientsParts {
  readonly name: string;
  readonly settings: ClientsSettings;
  readonly tally: CallerTally;
  /** Clients that share a policy get the same caller. */
  callerOf(client: number): Caller;
  readonly untilUs: number;
}

export function makeClients(world: World, parts: ClientsParts): Clients {
  const { think, burst } = parts.settings.arrivals;
  return think !== undefined || burst !== undefined ? new Loops(world, parts) : new Stream(world, parts);
}

/** Clients that call at given times or at a given rate, without waiting for earlier answers. */
class Stream extends Alarm implements Clients, Origin {
  readonly #world: World;
  readonly #parts: ClientsParts;
  readonly #gap: Random;
  readonly #who: Random;
  readonly #poison: Random;
  readonly #untilUs: number;
  readonly #repeat: Sampler | undefined;

  constructor(world: World, parts: ClientsParts) {
    super();
    const { name, settings } = parts;
    this.#world = world;
    this.#parts = parts;
    this.#gap = world.random('arrivals', name);
    this.#who = world.random('who', name);
    this.#poison = world.random('poison', name);
    this.#untilUs = Math.min(parts.untilUs, (settings.arrivals.until ?? Infinity) * 1000);
    this.#repeat =
      settings.repeat === undefined ? undefined : sampler(settings.repeat, world.random('repeat', name));
  }

  start(): void {
    this.#next(this.#parts.settings.arrivals.from * 1000);
  }

  ring(): void {
    const { nowUs } = this.#world.timeline;
    const { settings } = this.#parts;
    // The alarm rings for an arrival or for a change of the rate. Only an arrival makes a call.
    if (!this.#isChange) this.#call(settings.count > 1 ? Math.floor(this.#who() * settings.count) : 0);
    this.#next(nowUs);
  }

  /**
   * Repeats a failed call. In this class, the number `client` of a call is how often it was repeated so far.
   */
  ended({ caller, client: reloads }: Call, ok: boolean): void {
    const { tally, settings } = this.#parts;
    if (ok || !this.#repeat || reloads >= settings.repeatMax) return;
    const { timeline } = this.#world;
    const again = new Timer(timeline, () => {
      tally.reloads.add(timeline.nowUs);
      this.#callWith(caller, reloads + 1);
    });
    const againUs = timeline.nowUs + this.#repeat();
    if (againUs < this.#parts.untilUs) timeline.setUs(again, againUs);
  }

  #isChange = false;
  #arrived = 0;

  /**
   * Sets the alarm for the next arrival, or for an earlier change of the rate. After a change, the next
   * arrival is drawn again. This is correct, because in a Poisson process it does not depend on earlier
   * arrivals.
   */
  #next(fromUs: number): void {
    const { arrivals } = this.#parts.settings;
    if (arrivals.at) {
      const at = arrivals.at[this.#arrived++];
      if (at !== undefined && at * 1000 < this.#untilUs)
        this.#world.timeline.setUs(this, Math.round(at * 1000));
      return;
    }
    const spike = arrivals.spikes.find((each) => fromUs >= each.from * 1000 && fromUs < each.until * 1000);
    const perMs = spike?.rate ?? arrivals.poisson ?? arrivals.constant ?? 0;
    const gapUs = (arrivals.constant === undefined ? -Math.log(1 - this.#gap()) : 1) * (1000 / perMs);
    const changes = arrivals.spikes.flatMap((each) => [each.from * 1000, each.until * 1000]);
    const changeUs = Math.min(...changes.filter((each) => each > fromUs), Infinity);
    this.#isChange = fromUs + gapUs >= changeUs;
    // Round the time of a change up. Rounded down, the loop would find the same change again and never end.
    const atUs = this.#isChange ? Math.ceil(changeUs) : Math.round(fromUs + gapUs);
    if (atUs < this.#untilUs) this.#world.timeline.setUs(this, atUs);
  }

  #call(client: number): void {
    this.#callWith(this.#parts.callerOf(client), 0);
  }

  #callWith(caller: Caller, reloads: number): void {
    const { poison } = this.#parts.settings;
    caller.ask(this, reloads, poison > 0 && this.#poison() < poison);
  }
}

/**
 * Clients that wait for an answer before they call again. Arrays hold their state: a million clients must fit
 * in memory.
 */
class Loops extends SharedAlarm implements Clients, Origin {
  readonly #parts: ClientsParts;
  readonly #timeline: World['timeline'];
  readonly #streams: StreamBank;
  readonly #think: Sampler;
  readonly #repeat: Sampler | undefined;
  readonly #poison: Random;
  readonly #untilUs: number;
  /** For each client, the number of calls that it still makes; `undefined` means no limit. */
  readonly #left: Float64Array | undefined;
  readonly #reloads: Int32Array | undefined;

  constructor(world: World, parts: ClientsParts) {
    super();
    const { name, settings } = parts;
    const calls = settings.arrivals.burst === undefined ? settings.calls : 1;
    this.#parts = parts;
    this.#timeline = world.timeline;
    this.#streams = new StreamBank(settings.count, world.random('think', name));
    const random = () => this.#streams.draw();
    this.#think = sampler(settings.arrivals.think, random);
    this.#repeat = settings.repeat === undefined ? undefined : sampler(settings.repeat, random);
    this.#poison = world.random('poison', name);
    this.#untilUs = Math.min(parts.untilUs, (settings.arrivals.until ?? Infinity) * 1000);
    this.#left = calls < Infinity ? new Float64Array(settings.count).fill(calls) : undefined;
    this.#reloads = settings.repeatMax < Infinity ? new Int32Array(settings.count) : undefined;
  }

  start(): void {
    const { count, arrivals } = this.#parts.settings;
    const { burst, from } = arrivals;
    for (let client = 0; client < count; client++) {
      this.#streams.current = client;
      const firstUs = burst === undefined ? from * 1000 + this.#think() : burst * 1000;
      this.#timeline.setFor(this, client, firstUs);
    }
  }

  ringFor(client: number): void {
    if (this.#timeline.nowUs >= this.#untilUs) return;
    const { callerOf, settings } = this.#parts;
    const isPoison = settings.poison > 0 && this.#poison() < settings.poison;
    callerOf(client).ask(this, client, isPoison);
  }

  ended({ client, startedUs }: Call, ok: boolean): void {
    this.#streams.current = client;
    let waitUs: number;
    if (!ok && this.#repeat && this.#mayReload(client)) {
      waitUs = this.#repeat();
      this.#parts.tally.reloads.add(this.#timeline.nowUs);
    } else if (!ok && this.#parts.settings.quits) return;
    else if (this.#left && --this.#left[client]! <= 0) {
      if (ok) this.#parts.tally.finished++;
      return;
    } else {
      waitUs = this.#think();
      if (this.#reloads) this.#reloads[client] = 0;
    }
    // The next call begins at least 1 µs after the last one, so that virtual time always advances.
    this.#timeline.setFor(this, client, Math.max(this.#timeline.nowUs + waitUs, startedUs + 1));
  }

  #mayReload(client: number): boolean {
    return !this.#reloads || ++this.#reloads[client]! <= this.#parts.settings.repeatMax;
  }
}
