import { assertControl, type Controls, controlId } from '../controls.ts';
import { assertReason } from '../parked-filter.ts';
import type { SharedState } from './shared-state.ts';
import type { MemoryStorage, Row } from './storage.ts';

/**
 * Implements the operators' controls. The additional method `version` removes expired controls and then returns the
 * version of the controls.
 */
export function memoryControls(shared: SharedState): Controls & { version(now: number): number } {
  const { storage } = shared;

  function changed(topic: string): void {
    storage.controlsVersion += 1;
    storage.ring(topic);
  }

  function version(now: number): number {
    for (const [id, { until = Infinity, control }] of storage.controls) {
      if (until > now) continue;
      storage.controls.delete(id);
      changed(control.topic);
    }
    return storage.controlsVersion;
  }

  return {
    version,

    async impose(control, act, forMs) {
      assertControl(control, act, forMs);
      return shared.write((since) => {
        const until = forMs === undefined ? undefined : since + forMs;
        const active = { id: controlId(control), control, act, since, until };
        storage.controls.set(active.id, active);
        changed(control.topic);
        return active;
      });
    },

    async lift(id, act) {
      assertReason(act);
      return shared.write((now) => {
        version(now);
        const active = storage.controls.get(id);
        if (!active) return false;
        storage.controls.delete(id);
        changed(active.control.topic);
        return true;
      });
    },

    async active() {
      return { version: version(shared.now()), controls: [...storage.controls.values()] };
    },
  };
}

/** Returns a function that tells whether an event of the topic is held back by a quarantine. */
export function quarantineOf(storage: MemoryStorage, topic: string, now: number): (row: Row) => boolean {
  const tenants = new Set<string>();
  const keys = new Set<string>();
  for (const { control, until = Infinity } of storage.controls.values()) {
    if (control.kind !== 'quarantine' || control.topic !== topic || until <= now) continue;
    if ('tenant' in control) tenants.add(control.tenant);
    else keys.add(control.key);
  }
  return ({ envelope: { tenant, key } }) =>
    (tenant !== undefined && tenants.has(tenant)) || (key !== undefined && keys.has(key));
}
