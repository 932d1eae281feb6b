import {
  assertControl,
  type Control,
  type Controls,
  controlId,
  controlSubjects,
  topicOf,
} from '../controls.ts';
import { assertReason } from '../parked-filter.ts';
import { writeAudit } from './audit.ts';
import type { SharedState } from './shared-state.ts';
import type { MemoryStorage, Row } from './storage.ts';

/**
 * Returns the controls of a memory engine. `version` first removes expired controls, because that changes the
 * version.
 */
export function memoryControls(shared: SharedState): Controls & { version(now: number): number } {
  const { storage } = shared;

  function changed(control: Control): void {
    storage.controlsVersion += 1;
    const topic = topicOf(control);
    if (topic !== undefined) storage.ring(topic);
  }

  function version(now: number): number {
    for (const [id, { until = Infinity, control }] of storage.controls) {
      if (until > now) continue;
      storage.controls.delete(id);
      changed(control);
    }
    return storage.controlsVersion;
  }

  return {
    version,

    async impose(control, act, forMs) {
      assertControl(control, act, forMs);
      return shared.write((since) => {
        version(since);
        const until = forMs === undefined ? undefined : since + forMs;
        const id = controlId(control);
        const before = storage.controls.get(id);
        writeAudit(shared, { ...act, what: 'control_set', subjects: controlSubjects(control), before });
        changed(control);
        const active = { id, control, act, since, until, version: storage.controlsVersion };
        storage.controls.set(id, active);
        return active;
      });
    },

    async lift(id, act) {
      assertReason(act);
      return shared.write((now) => {
        version(now);
        const active = storage.controls.get(id);
        if (!active) return false;
        const subjects = controlSubjects(active.control);
        writeAudit(shared, { ...act, what: 'control_removed', subjects, before: active });
        storage.controls.delete(id);
        changed(active.control);
        return true;
      });
    },

    async active() {
      const now = shared.now();
      return { version: version(now), now, controls: [...storage.controls.values()] };
    },
  };
}

/**
 * Returns a function that says whether an event must not be leased, because of a quarantine or paused
 * retries.
 */
export function heldOf(storage: MemoryStorage, topic: string, now: number): (row: Row) => boolean {
  const isQuarantined = quarantineOf(storage, topic, now);
  if (!storage.controls.has(controlId({ kind: 'pause', topic, only: 'retries' }))) return isQuarantined;
  return (row) => row.attempts > 0 || row.suspect || isQuarantined(row);
}

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
