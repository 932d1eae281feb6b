import type { Controls, NewAssembly } from '@holdfast/contracts';
import { type Clock, Timer } from 'holdfast';

export interface ProgramControlsSettings {
  readonly controls: Controls | undefined;
  readonly clock: Clock;
  onChange(): void;
  onFailure(what: string, error: unknown): void;
}

/** The topic name under which operators pause or quarantine a program. */
export function programTopic(program: string): string {
  return `assembly/${program}`;
}

/** Each process applies a new control within this time. */
const readEveryMs = 2000;

/**
 * The controls that operators have set on programs. Assemblies of a paused program wait, and so do those
 * whose tenant or key is quarantined.
 */
export class ProgramControls {
  readonly #settings: ProgramControlsSettings;
  readonly #timer: Timer;
  #version = -1;
  #paused: ReadonlySet<string> = new Set();
  /** The quarantined tenants and keys, each in the form that `heldName` returns. */
  #held: ReadonlySet<string> = new Set();

  constructor(settings: ProgramControlsSettings) {
    this.#settings = settings;
    this.#timer = new Timer(settings.clock, () => void this.#read());
  }

  /**
   * Resolves when the controls have been read. The worker begins after that, so that it does not run a paused
   * program.
   */
  async start(): Promise<void> {
    if (this.#settings.controls) await this.#read();
  }

  stop(): void {
    this.#timer.clear();
  }

  isPaused(program: string): boolean {
    return this.#paused.size > 0 && this.#paused.has(programTopic(program));
  }

  isHeld({ name, tenant, key }: HeldBy): boolean {
    if (this.#held.size === 0) return false;
    const topic = programTopic(name);
    return (
      (tenant !== undefined && this.#held.has(heldName(topic, 'tenant', tenant))) ||
      (key !== undefined && this.#held.has(heldName(topic, 'key', key)))
    );
  }

  async #read(): Promise<void> {
    const { controls, onChange, onFailure } = this.#settings;
    // Set the timer before the call, so that `stop` can clear it during the call.
    this.#timer.setIn(readEveryMs);
    try {
      const { version, controls: active } = await controls!.active();
      if (version === this.#version) return;
      this.#version = version;
      const paused = new Set<string>();
      const held = new Set<string>();
      for (const { control } of active) {
        if (control.kind === 'pause' && !('only' in control && control.only)) paused.add(control.topic);
        else if (control.kind === 'quarantine' && 'tenant' in control && control.tenant !== undefined)
          held.add(heldName(control.topic, 'tenant', control.tenant));
        else if (control.kind === 'quarantine' && 'key' in control && control.key !== undefined)
          held.add(heldName(control.topic, 'key', control.key));
      }
      this.#paused = paused;
      this.#held = held;
      onChange();
    } catch (error) {
      onFailure('controls', error);
    }
  }
}

type HeldBy = {
  readonly name: string;
  readonly tenant?: NewAssembly['tenant'] | undefined;
  readonly key?: NewAssembly['key'] | undefined;
};

function heldName(topic: string, by: 'tenant' | 'key', value: string): string {
  return JSON.stringify([topic, by, value]);
}
