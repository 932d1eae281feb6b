import {
  type Act,
  type ActiveControl,
  type ActiveControls,
  assertControl,
  assertReason,
  type Control,
  type Controls,
  controlId,
  controlSubjects,
  topicOf,
} from '@holdfast/contracts';
import { type AuditLog, toAct } from './audit-log.ts';
import type { Doorbells } from './doorbells.ts';
import { isHead, queueOf } from './ready-queue.ts';
import type { Store } from './store.ts';
import { toStoredMs } from './stored-time.ts';

export interface TopicControls {
  readonly isPaused: boolean;
  /** True: only first attempts are leased. */
  readonly retriesArePaused: boolean;
  /** Returns the id of the quarantine of this tenant or key, if there is one. */
  holder(tenant: string | null, key: string | null): string | undefined;
  readonly tenants: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
}

export interface ControlsState {
  readonly version: number;
  /** True: a control has expired, or events of an ended quarantine are not back in the queue. */
  readonly needsCatchUp: boolean;
}

/** One transaction puts at most this many events back into the queue. */
const releasedTogether = 1000;

export class ControlBoard implements Controls {
  readonly #store: Store;
  readonly #bells: Doorbells;
  readonly #audit: AuditLog;
  readonly #meta;
  readonly #all;
  readonly #find;
  readonly #put;
  readonly #remove;
  readonly #ended;
  readonly #changed;
  readonly #released;
  readonly #unheld;
  readonly #setReleasing;
  readonly #orphan;
  #known:
    | { version: number; controls: ActiveControl[]; topicControls: Map<string, TopicControls> }
    | undefined;

  constructor(store: Store, bells: Doorbells, audit: AuditLog) {
    this.#store = store;
    this.#bells = bells;
    this.#audit = audit;
    store.onRollback(() => {
      this.#known = undefined;
    });
    this.#meta = store.prepare('SELECT controls_version, controls_end_at, is_releasing FROM holdfast_meta');
    this.#all = store.prepare('SELECT * FROM holdfast_control ORDER BY since, id');
    this.#find = store.prepare('SELECT * FROM holdfast_control WHERE id = ?');
    this.#put = store.prepare(`
      INSERT OR REPLACE INTO holdfast_control (id, control, who, why, undoes, since, until, version)
      SELECT ?, ?, ?, ?, ?, ?, ?, controls_version + 1 FROM holdfast_meta RETURNING *`);
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

  async impose(control: Control, act: Act, forMs?: number): Promise<ActiveControl> {
    assertControl(control, act, forMs);
    return this.#store.write((now, since) => {
      this.#audit.assertMayUndo(act);
      this.#endOverdue(now);
      const id = controlId(control);
      const before = this.#shown(id, since - now);
      this.#audit.write({ ...act, what: 'control_set', subjects: controlSubjects(control), before }, since);
      const until = forMs === undefined ? null : toStoredMs(now + forMs);
      const { who, why, undoes = null } = act;
      const row = this.#put.get(id, JSON.stringify(control), who, why, undoes, since, until)!;
      this.#noteChange(control);
      return shown(toActiveControl(row), since - now);
    });
  }

  async lift(id: string, act: Act): Promise<boolean> {
    assertReason(act);
    return this.#store.write((now, wall) => {
      this.#audit.assertMayUndo(act);
      this.#endOverdue(now);
      const before = this.#shown(id, wall - now);
      if (!before) return false;
      const subjects = controlSubjects(before.control);
      this.#audit.write({ ...act, what: 'control_removed', subjects, before }, wall);
      this.#lift(id);
      return true;
    });
  }

  async active(): Promise<ActiveControls> {
    const { needsCatchUp } = this.#store.look((now) => this.state(now));
    if (needsCatchUp) await this.#store.write((now) => this.catchUp(now));
    return this.#store.look((now, wall) => {
      const { version, controls } = this.#read(this.state(now).version);
      return { version, now: wall, controls: controls.map((control) => shown(control, wall - now)) };
    });
  }

  state(now: number): ControlsState {
    const { controls_version, controls_end_at, is_releasing } = this.#meta.get()!;
    const hasEnded = controls_end_at !== null && Number(controls_end_at) <= now;
    return { version: Number(controls_version), needsCatchUp: hasEnded || is_releasing === 1 };
  }

  /**
   * Removes expired controls, and puts events of ended quarantines back into the queue. Call it within a transaction.
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
   * Returns the pauses and quarantines of a topic. `version` is the version of the controls, if it was just
   * read.
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

  #lift(id: string): void {
    const row = this.#remove.get(id);
    const control = JSON.parse(String(row?.control)) as Control;
    if (control.kind === 'quarantine') this.#setReleasing.run(1);
    this.#noteChange(control);
  }

  #noteChange(control: Control): void {
    this.#changed.run();
    const topic = topicOf(control);
    if (topic !== undefined) this.#bells.ringAfterCommit(topic);
  }

  #shown(id: string, aheadMs: number): ActiveControl | undefined {
    const row = this.#find.get(id);
    return row && shown(toActiveControl(row), aheadMs);
  }
}

function topicControlsOf(controls: readonly ActiveControl[], topic: string): TopicControls {
  const tenants = new Map<string, string>();
  const keys = new Map<string, string>();
  let [isPaused, retriesArePaused] = [false, false];
  for (const { id, control } of controls) {
    if (topicOf(control) !== topic) continue;
    if (control.kind === 'pause' && 'only' in control) retriesArePaused = true;
    else if (control.kind === 'pause') isPaused = true;
    if (control.kind !== 'quarantine') continue;
    if ('tenant' in control) tenants.set(control.tenant, id);
    else keys.set(control.key, id);
  }
  return {
    isPaused,
    retriesArePaused,
    tenants,
    keys,
    holder: (tenant, key) =>
      (tenant === null ? undefined : tenants.get(tenant)) ?? (key === null ? undefined : keys.get(key)),
  };
}

/** Converts `until` from the store's clock to the wall clock, which callers see. */
function shown(control: ActiveControl, aheadMs: number): ActiveControl {
  return control.until === undefined ? control : { ...control, until: toStoredMs(control.until + aheadMs) };
}

function toActiveControl(row: Record<string, unknown>): ActiveControl {
  return {
    id: String(row.id),
    control: JSON.parse(String(row.control)),
    act: toAct(row),
    since: Number(row.since),
    until: row.until === null ? undefined : Number(row.until),
    version: Number(row.version),
  };
}
