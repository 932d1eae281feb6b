import {
  type ActiveControl,
  assertControl,
  assertReason,
  type Control,
  type Controls,
  controlId,
} from '@holdfast/contracts';
import type { Doorbells } from './doorbells.ts';
import { isHead, queueOf } from './ready-queue.ts';
import type { Store } from './store.ts';
import { toStoredMs } from './stored-time.ts';

/** The pauses and quarantines of one topic, in the form that a lease needs. */
export interface TopicControls {
  readonly isPaused: boolean;
  /** Returns the id of the quarantine that stops the delivery of an event with this tenant and key. */
  holder(tenant: string | null, key: string | null): string | undefined;
  readonly tenants: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
}

export interface ControlsState {
  readonly version: number;
  /**
   * True if a pause or quarantine has expired, or if events of an ended quarantine are not yet back in the ready queue.
   */
  readonly needsCatchUp: boolean;
}

/** The number of events that one transaction puts back into the ready queue after a quarantine. */
const releasedTogether = 1000;

/**
 * Stores controls: pauses and quarantines that an operator has set. `controlsFor` returns the controls of one topic.
 */
export class ControlBoard implements Controls {
  readonly #store: Store;
  readonly #bells: Doorbells;
  readonly #meta;
  readonly #all;
  readonly #put;
  readonly #remove;
  readonly #ended;
  readonly #changed;
  readonly #released;
  readonly #unheld;
  readonly #setReleasing;
  readonly #orphan;
  /** The controls, cached with the version at which they were read. */
  #known:
    | { version: number; controls: ActiveControl[]; topicControls: Map<string, TopicControls> }
    | undefined;

  constructor(store: Store, bells: Doorbells) {
    this.#store = store;
    this.#bells = bells;
    store.onRollback(() => {
      this.#known = undefined;
    });
    this.#meta = store.prepare('SELECT controls_version, controls_end_at, is_releasing FROM holdfast_meta');
    this.#all = store.prepare('SELECT * FROM holdfast_control ORDER BY since, id');
    this.#put = store.prepare('INSERT OR REPLACE INTO holdfast_control VALUES (?, ?, ?, ?, ?, ?)');
    this.#remove = store.prepare('DELETE FROM holdfast_control WHERE id = ? RETURNING control');
    this.#ended = store.prepare('SELECT id FROM holdfast_control WHERE until <= ?');
    this.#changed = store.prepare(`
      UPDATE holdfast_meta SET controls_version = controls_version + 1,
        controls_end_at = (SELECT min(until) FROM holdfast_control)`);
    this.#setReleasing = store.prepare('UPDATE holdfast_meta SET is_releasing = ?');
    this.#orphan = store.prepare(`
      SELECT control FROM holdfast_held WHERE control NOT IN (SELECT id FROM holdfast_control) LIMIT 1`);
    this.#released = store.prepare(`
      INSERT INTO holdfast_ready
      SELECT topic, ${queueOf}, due_at, seq FROM holdfast_event event
      WHERE seq IN (SELECT seq FROM holdfast_held WHERE control = ? ORDER BY seq LIMIT ? + 0) AND ${isHead}`);
    this.#unheld = store.prepare(`
      DELETE FROM holdfast_held WHERE control = ?1
        AND seq IN (SELECT seq FROM holdfast_held WHERE control = ?1 ORDER BY seq LIMIT ?2 + 0)`);
  }

  async impose(control: Control, act: ActiveControl['act'], forMs?: number): Promise<ActiveControl> {
    assertControl(control, act, forMs);
    return this.#store.write((now, since) => {
      const until = forMs === undefined ? undefined : toStoredMs(now + forMs);
      const standing = { id: controlId(control), control, act, since, until };
      this.#put.run(standing.id, JSON.stringify(control), act.who, act.why, since, until ?? null);
      this.#noteChange(control.topic);
      return shown(standing, since - now);
    });
  }

  async lift(id: string, act: ActiveControl['act']): Promise<boolean> {
    assertReason(act);
    return this.#store.write((now) => {
      this.#endOverdue(now);
      return this.#lift(id);
    });
  }

  async active(): Promise<{ version: number; controls: readonly ActiveControl[] }> {
    const { needsCatchUp } = this.#store.look((now) => this.state(now));
    if (needsCatchUp) await this.#store.write((now) => this.catchUp(now));
    return this.#store.look((now, wall) => {
      const { version, controls } = this.#read(this.state(now).version);
      return { version, controls: controls.map((control) => shown(control, wall - now)) };
    });
  }

  state(now: number): ControlsState {
    const { controls_version, controls_end_at, is_releasing } = this.#meta.get()!;
    const hasEnded = controls_end_at !== null && Number(controls_end_at) <= now;
    return { version: Number(controls_version), needsCatchUp: hasEnded || is_releasing === 1 };
  }

  /**
   * Removes expired controls, and puts at most `releasedTogether` events of ended quarantines back into the ready
   * queue. Call it within a transaction.
   */
  catchUp(now: number): void {
    this.#endOverdue(now);
    const orphan = this.#orphan.get()?.control as string | undefined;
    if (orphan === undefined) {
      this.#setReleasing.run(0);
      return;
    }
    this.#released.run(orphan, releasedTogether);
    this.#unheld.run(orphan, releasedTogether);
  }

  /**
   * Returns the pauses and quarantines of a topic. Pass `version`, the number of the last change of any control, if the
   * caller has just read it.
   */
  controlsFor(topic: string, version: number = this.state(0).version): TopicControls {
    const { controls, topicControls } = this.#read(version);
    const found = topicControls.get(topic) ?? topicControlsOf(controls, topic);
    topicControls.set(topic, found);
    return found;
  }

  #read(version: number) {
    if (this.#known?.version !== version) {
      const controls = this.#all.all().map(toActiveControl);
      this.#known = { version, controls, topicControls: new Map() };
    }
    return this.#known;
  }

  #endOverdue(now: number): void {
    for (const { id } of this.#ended.all(now)) this.#lift(String(id));
  }

  #lift(id: string): boolean {
    const row = this.#remove.get(id);
    if (!row) return false;
    const control = JSON.parse(String(row.control)) as Control;
    if (control.kind === 'quarantine') this.#setReleasing.run(1);
    this.#noteChange(control.topic);
    return true;
  }

  #noteChange(topic: string): void {
    this.#changed.run();
    this.#bells.ringAfterCommit(topic);
  }
}

function topicControlsOf(controls: readonly ActiveControl[], topic: string): TopicControls {
  const tenants = new Map<string, string>();
  const keys = new Map<string, string>();
  let isPaused = false;
  for (const { id, control } of controls) {
    if (control.topic !== topic) continue;
    if (control.kind === 'pause') isPaused = true;
    if (control.kind !== 'quarantine') continue;
    if ('tenant' in control) tenants.set(control.tenant, id);
    else keys.set(control.key, id);
  }
  return {
    isPaused,
    tenants,
    keys,
    holder: (tenant, key) =>
      (tenant === null ? undefined : tenants.get(tenant)) ?? (key === null ? undefined : keys.get(key)),
  };
}

/** Converts `until` from store time, in which it is stored, to wall time, which callers see. */
function shown(control: ActiveControl, aheadMs: number): ActiveControl {
  return control.until === undefined ? control : { ...control, until: toStoredMs(control.until + aheadMs) };
}

function toActiveControl(row: Record<string, unknown>): ActiveControl {
  return {
    id: String(row.id),
    control: JSON.parse(String(row.control)),
    act: { who: String(row.who), why: String(row.why) },
    since: Number(row.since),
    until: row.until === null ? undefined : Number(row.until),
  };
}
