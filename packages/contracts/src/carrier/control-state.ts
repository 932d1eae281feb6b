import { type ActiveControls, type Controls, controlId } from '../controls.ts';
import type { CarriedEvent } from './carried-event.ts';

/** The controls that operators have set for one topic, as they were last read. */
export class ControlState {
  readonly #controls: Controls;
  readonly #topic: string;
  #version = -1;
  #tenants = new Set<string>();
  #keys = new Set<string>();
  isPaused = false;
  retriesArePaused = false;

  constructor(controls: Controls, topic: string) {
    this.#controls = controls;
    this.#topic = topic;
  }

  get version(): number {
    return this.#version;
  }

  async read(version?: number): Promise<void> {
    if (version !== undefined && version === this.#version) return;
    const active = await this.#controls.active();
    this.#version = active.version;
    this.#take(active);
  }

  isHeld({ tenant, key }: CarriedEvent): boolean {
    return (tenant !== undefined && this.#tenants.has(tenant)) || (key !== undefined && this.#keys.has(key));
  }

  #take({ controls }: ActiveControls): void {
    const topic = this.#topic;
    const ids = new Set(controls.map(({ id }) => id));
    this.isPaused = ids.has(controlId({ kind: 'pause', topic }));
    this.retriesArePaused = ids.has(controlId({ kind: 'pause', topic, only: 'retries' }));
    this.#tenants = new Set();
    this.#keys = new Set();
    for (const { control } of controls) {
      if (control.kind !== 'quarantine' || control.topic !== topic) continue;
      if ('tenant' in control) this.#tenants.add(control.tenant);
      else this.#keys.add(control.key);
    }
  }
}
