import type { Act, Controls } from '@holdfast/contracts';

/** Who paused a topic, why, and until when. Plain JSON. */
export interface PauseState extends Act {
  /** When the pause ends, epoch ms by the store's clock. `null`: when an operator resumes the topic. */
  readonly until: number | null;
  /** `retries`: only the retries are paused. `null`: the whole topic is paused. */
  readonly only: 'retries' | null;
}

/**
 * The operators' controls of one topic that consumers apply: skip, reroute and concurrency. The engine itself
 * applies pause and quarantine.
 */
export class TopicControlState {
  readonly #controls: Controls;
  readonly #topic: string;
  #version: number | undefined;
  #skipped: ReadonlySet<string> = new Set();
  /** The target topic for each event type. The entry with the key `undefined` is for all other types. */
  #reroutes: ReadonlyMap<string | undefined, string> = new Map();
  concurrencyMax: number | undefined;
  /** The pause of the whole topic, or of its retries only. */
  paused: PauseState | undefined;

  constructor(controls: Controls, topic: string) {
    this.#controls = controls;
    this.#topic = topic;
  }

  isCurrent(version: number): boolean {
    return version === this.#version;
  }

  async read(): Promise<this> {
    const { version, controls } = await this.#controls.active();
    const skipped = new Set<string>();
    const reroutes = new Map<string | undefined, string>();
    this.concurrencyMax = undefined;
    this.paused = undefined;
    for (const { control, act, until } of controls) {
      if (!('topic' in control) || control.topic !== this.#topic) continue;
      // If an operator has paused both the whole topic and its retries, report the pause of the whole topic.
      if (control.kind === 'pause' && this.paused?.only !== null)
        this.paused = { ...act, until: until ?? null, only: 'only' in control ? control.only : null };
      if (control.kind === 'skip') skipped.add(control.eventId);
      if (control.kind === 'reroute') reroutes.set(control.type, control.to);
      if (control.kind === 'concurrency') this.concurrencyMax = control.concurrencyMax;
    }
    this.#skipped = skipped;
    this.#reroutes = reroutes;
    this.#version = version;
    return this;
  }

  /** True: no event is skipped or rerouted. This getter runs for every event, so it must be fast. */
  get isEmpty(): boolean {
    return this.#skipped.size === 0 && this.#reroutes.size === 0;
  }

  skips(id: string): boolean {
    return this.#skipped.has(id);
  }

  /**
   * Returns the topic to which events of this type are rerouted. `undefined`: they are not rerouted. A
   * reroute to this topic itself would never end, so it is ignored.
   */
  destinationOf(type: string | undefined): string | undefined {
    const to = this.#reroutes.get(type) ?? this.#reroutes.get(undefined);
    return to === this.#topic ? undefined : to;
  }
}
