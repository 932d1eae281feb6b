import {
  type Act,
  type ActiveControl,
  type ActiveControls,
  type Audit,
  assertControl,
  assertReason,
  assertUndoable,
  type Controls,
  clampMs,
  controlId,
  controlSubjects,
  EngineFullError,
  topicOf,
} from '@holdfast/contracts';
import { type RedisClient, scriptOf } from '../script-runner.ts';
import * as scripts from './lua/controls.ts';
import { copyControls } from './lua/lease.ts';
import { topicKey } from './topic-keys.ts';

const controlsMax = 10_000;

/**
 * Throws if `undoes` is given without an audit log. Without an audit log, there is no entry that can be
 * undone.
 */
export function assertNothingToUndo({ undoes }: Act, audit: Audit | undefined): void {
  if (undoes !== undefined && !audit) assertUndoable(undoes, undefined);
}

export interface RedisControls extends Controls {
  version(): Promise<number>;
  /**
   * Copies the controls of a topic into its cluster slot. The scripts of the topic can read only that slot.
   */
  copyTo(topic: string): Promise<void>;
}

/**
 * Stores operators' controls, such as pause and quarantine, in one hash with one version number. Each topic keeps a
 * copy of its own controls, with the version number that was copied. If a crash prevents the update of a copy, the
 * next call that leases events of the topic finds the older number and updates the copy.
 */
export function redisControls(
  client: RedisClient,
  { prefix, audit }: { readonly prefix: string; readonly audit: Audit | undefined },
): RedisControls {
  const keys = [`${prefix}{controls}`, `${prefix}{controls}:until`];
  const version = scriptOf(client, 'controls_version', scripts.version);
  const readActive = scriptOf(client, 'controls_active', scripts.active);
  const impose = scriptOf(client, 'controls_impose', scripts.impose);
  const lift = scriptOf(client, 'controls_lift', scripts.lift);
  const copy = scriptOf(client, 'controls_copy', copyControls);

  async function active(): Promise<ActiveControls> {
    const [now, fields] = (await readActive(keys, [])) as [string, string[]];
    const controls: ActiveControl[] = [];
    let current = 0;
    for (let at = 0; at < fields.length; at += 2) {
      const [name, value] = [fields[at]!, fields[at + 1]!];
      if (name === 'version') current = Number(value);
      else controls.push(activeControl(value));
    }
    return { version: current, now: Number(now), controls };
  }

  async function copyTo(topic: string): Promise<void> {
    const { version: current, controls } = await active();
    await copy([topicKey(prefix, topic)], [current, copyOf(controls, topic)]);
  }

  return {
    active,
    copyTo,
    version: async () => Number(await version(keys, [])),

    async impose(control, act, forMs) {
      assertControl(control, act, forMs);
      assertNothingToUndo(act, audit);
      const id = controlId(control);
      // Write the audit entry before the change, so that a crash never leaves a change without an entry.
      if (audit) {
        const before = (await active()).controls.find((each) => each.id === id);
        await audit.record({ ...act, what: 'control_set', subjects: controlSubjects(control), before });
      }
      const ms = forMs === undefined ? '' : clampMs(forMs);
      const stored = await impose(keys, [id, JSON.stringify({ control, act }), ms, controlsMax]);
      if (stored === null) throw new EngineFullError('controls', controlsMax);
      const topic = topicOf(control);
      if (topic !== undefined) await copyTo(topic);
      return activeControl(stored as unknown as string);
    },

    async lift(id, act) {
      assertReason(act);
      assertNothingToUndo(act, audit);
      const before = (await active()).controls.find((each) => each.id === id);
      if (!before) return false;
      const subjects = controlSubjects(before.control);
      await audit?.record({ ...act, what: 'control_removed', subjects, before });
      const lifted = Number(await lift(keys, [id])) === 1;
      const topic = topicOf(before.control);
      if (topic !== undefined) await copyTo(topic);
      return lifted;
    },
  };
}

function activeControl(stored: string): ActiveControl {
  const lineEnd = stored.indexOf('\n');
  const [since, until, version] = stored.slice(0, lineEnd).split(' ');
  const { control, act } = JSON.parse(stored.slice(lineEnd + 1)) as Pick<ActiveControl, 'control' | 'act'>;
  return {
    id: controlId(control),
    control,
    act,
    since: Number(since),
    until: until === '' ? undefined : Number(until),
    version: Number(version),
  };
}

/** Returns the controls of a topic as JSON for the script `lease`, each with the time at which it ends. */
function copyOf(controls: readonly ActiveControl[], topic: string): string {
  const tenants: Record<string, number> = Object.create(null);
  const keys: Record<string, number> = Object.create(null);
  const copy: { p?: number; r?: number; t?: typeof tenants; k?: typeof keys } = {};
  for (const { control, until } of controls) {
    if (topicOf(control) !== topic) continue;
    const ends = until ?? clampMs(Infinity);
    if (control.kind === 'pause') copy['only' in control && control.only ? 'r' : 'p'] = ends;
    if (control.kind !== 'quarantine') continue;
    if ('tenant' in control && control.tenant !== undefined) tenants[control.tenant] = ends;
    else keys[(control as { key: string }).key] = ends;
  }
  if (Object.keys(tenants).length > 0) copy.t = tenants;
  if (Object.keys(keys).length > 0) copy.k = keys;
  const json = JSON.stringify(copy);
  return json === '{}' ? '' : json;
}
