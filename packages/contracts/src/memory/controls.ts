import { assertControl, type Controls, controlId } from '../controls.ts';
import { assertReason } from '../parked-filter.ts';
import type { Room } from './room.ts';
import type { MemoryStorage, Row } from './storage.ts';

/** `version` lifts what has ended by itself first. */
export function memoryControls(room: Room): Controls & { version(now: number): number } {
  const { storage } = room;

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
      return room.write((since) => {
        const until = forMs === undefined ? undefined : since + forMs;
        const standing = { id: controlId(control), control, act, since, until };
        storage.controls.set(standing.id, standing);
        changed(control.topic);
        return standing;
      });
    },

    async lift(id, act) {
      assertReason(act);
      return room.write((now) => {
        version(now);
        const standing = storage.controls.get(id);
        if (!standing) return false;
        storage.controls.delete(id);
        changed(standing.control.topic);
        return true;
      });
    },

    async active() {
      return { version: version(room.now()), controls: [...storage.controls.values()] };
    },
  };
}

/** Which events of a topic are held by a quarantine. */
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
