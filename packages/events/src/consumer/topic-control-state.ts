import type { Controls } from '@holdfast/contracts';

/**
 * The operators' controls of one topic that consumers apply: skip, reroute and concurrency. The other controls, pause
 * and quarantine, are applied by the engine.
 */
export class TopicControlState {
  readonly #controls: Controls;
  readonly #topic: string;
  #version: number | undefined;
  #skipped: ReadonlySet<string> = new Set();
  /** The target topic for each event type. The entry with the key `undefined` applies to all other types. */
  #reroutes: ReadonlyMap<string | undefined, string> = new Map();
  concurrencyMax: number | undefined;

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
    for (const { control } of controls) {
      if (control.topic !== this.#topic) continue;
      if (control.kind === 'skip') skipped.add(control.eventId);
      if (control.kind === 'reroute') reroutes.set(control.type, control.to);
      if (control.kind === 'concurrency') this.concurrencyMax = control.concurrencyMax;
    }
    this.#skipped = skipped;
    this.#reroutes = reroutes;
    this.#version = version;
    return this;
  }

  /** True if no event is skipped or rerouted. This is the usual case, so the check must be fast. */
  get isEmpty(): boolean {
    return this.#skipped.size === 0 && this.#reroutes.size === 0;
  }

  skips(id: string): boolean {
    return this.#skipped.has(id);
  }

  /**
   * Returns the topic to which events of this type are rerouted. A reroute to the same topic is ignored, because it
   * would never end.
   */
  destinationOf(type: string | undefined): string | undefined {
    const to = this.#reroutes.get(type) ?? this.#reroutes.get(undefined);
    return to === this.#topic ? undefined : to;
  }
}
