import {
  type Act,
  type AuditEntry,
  assertDurationMs,
  assertEdit,
  assertFilter,
  assertReason,
  editDiff,
  jsonWithInfinity,
  numberIn,
  type PageRequest,
  type ParkedFilter,
  placeIn,
  type SizeLimits,
  type Triage,
  TriageError,
} from '@holdfast/contracts';
import type { ParkedSearch } from './parked-search.ts';
import { type ParkingLot, summaryColumns, toSummary } from './parking-lot.ts';
import { sqliteReplays } from './replays.ts';
import type { Store } from './store.ts';
import { toStoredMs } from './stored-time.ts';

/** Lets operators read, edit, discard, restore and replay parked events. */
export function sqliteTriage(
  store: Store,
  lot: ParkingLot,
  search: ParkedSearch,
  limits: SizeLimits,
): Triage {
  const discard = store.prepare(`
    UPDATE holdfast_parked SET status = 'discarded', discarded = ?2
    WHERE id = ?1 AND status = 'parked' AND operation IS NULL`);
  const restore = store.prepare(`
    UPDATE holdfast_parked SET status = 'parked', discarded = NULL WHERE id = ?1 AND status = 'discarded'`);
  const keep = store.prepare(`
    UPDATE holdfast_parked SET removed_at = ?2 WHERE id = ?1 AND status = 'parked' AND operation IS NULL`);
  const edit = store.prepare(`
    UPDATE holdfast_parked SET payload = ?2, headers = ?3, original_payload = ?4, original_headers = ?5, edits = ?6,
      is_edited = 1 WHERE id = ?1`);
  const rules = store.prepare('SELECT rule FROM holdfast_rule ORDER BY number');
  const setRule = store.prepare(`
    INSERT INTO holdfast_rule (name, rule) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET rule = excluded.rule`);
  const removeRule = store.prepare('DELETE FROM holdfast_rule WHERE name = ?');
  const audit = store.prepare(
    'SELECT * FROM holdfast_audit WHERE number < ? ORDER BY number DESC LIMIT ? + 0',
  );

  /** Applies `isChanged` to each event, writes one audit entry for the changed ones, and returns which were changed. */
  function change(
    what: AuditEntry['what'],
    ids: readonly string[],
    act: Act,
    isChanged: (id: string, now: number) => boolean,
  ): Promise<boolean[]> {
    assertReason(act);
    return store.write((now, wall) => {
      const changed = ids.map((id) => isChanged(id, now));
      const subjects = ids.filter((_, index) => changed[index]);
      if (subjects.length > 0) lot.audit(what, subjects, act, wall);
      return changed;
    });
  }

  /** Returns the reason and the message of the latest event of a group. */
  async function latestOf(filter: ParkedFilter, fingerprint: string) {
    const [row] = await search.list({ ...filter, fingerprint }, 'reason, message', undefined, 1);
    return { reason: String(row?.reason ?? ''), message: String(row?.message ?? '') };
  }

  return {
    async put(events) {
      return store.write((now, wall) => events.map((event) => lot.park(event, now, wall)));
    },

    async get(id) {
      return store.look((now, wall) => lot.find(id, wall - now));
    },

    async list(filter, { limit, cursor }) {
      const rows = await search.list(
        filter,
        summaryColumns,
        cursor === undefined ? cursor : placeIn(cursor),
        limit + 1,
      );
      const { now } = store.time();
      const items = rows.slice(0, limit).map((row) => toSummary(row, now));
      const last = items.at(-1);
      const isLast = rows.length <= limit || last === undefined;
      return { items, cursor: isLast ? undefined : JSON.stringify([last.parkedAt, last.id]) };
    },

    count: (filter) => search.count(filter),

    async groups(filter, { limit, cursor }) {
      const groups = await search.groups(filter);
      const [count, fingerprint] = cursor === undefined ? [Infinity, ''] : placeIn(cursor);
      const left = groups.filter(
        (group) => group.count < count || (group.count === count && group.fingerprint > fingerprint),
      );
      const shown = left.slice(0, limit);
      const items = [];
      for (const group of shown) items.push({ ...group, ...(await latestOf(filter, group.fingerprint)) });
      const last = shown.at(-1);
      const isLast = left.length <= limit || last === undefined;
      return { items, cursor: isLast ? undefined : JSON.stringify([last.count, last.fingerprint]) };
    },

    async edit(id, changes, act) {
      assertReason(act);
      assertEdit(changes, limits);
      return store.write((now, wall) => {
        const event = lot.find(id, wall - now);
        if (!event) return undefined;
        if (event.operation !== undefined) throw new TriageError('BUSY', `a replay has event ${id}`);
        const { payload, headers, edits, original = { payload, headers } } = event;
        const edited = { payload, headers, ...changes };
        const notes = [...edits, { ...act, at: wall, changes: editDiff(event, edited) }];
        edit.run(
          ...[id, edited.payload, JSON.stringify(edited.headers)],
          ...[original.payload, JSON.stringify(original.headers), JSON.stringify(notes)],
        );
        lot.audit('edit', [id], act, wall);
        return lot.find(id, wall - now);
      });
    },

    async discard(ids, act) {
      assertReason(act);
      const note = JSON.stringify({ who: act.who, why: act.why });
      return change('discard', ids, act, (id) => discard.run(id, note).changes === 1);
    },

    async restore(ids, act) {
      return change('restore', ids, act, (id) => restore.run(id).changes === 1);
    },

    async keep(ids, keepMs, act) {
      assertDurationMs('keepMs', keepMs);
      return change('keep', ids, act, (id, now) => keep.run(id, toStoredMs(now + keepMs)).changes === 1);
    },

    async resolve(replayed) {
      return store.write(() => replayed.map(({ id, operation }) => lot.resolve(id, operation)));
    },

    replays: sqliteReplays(store, lot, search),

    async rules() {
      return store.look(() => rules.all().map(({ rule }) => JSON.parse(String(rule))));
    },

    async setRule(rule, act) {
      assertFilter(rule.filter);
      assertReason(act);
      await store.write((_, wall) => {
        setRule.run(rule.name, jsonWithInfinity(rule));
        lot.audit('rule_set', [rule.name], act, wall);
      });
    },

    async removeRule(name, act) {
      assertReason(act);
      return store.write((_, wall) => {
        if (removeRule.run(name).changes === 0) return false;
        lot.audit('rule_removed', [name], act, wall);
        return true;
      });
    },

    async audit({ limit, cursor }: PageRequest) {
      const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : numberIn(cursor);
      const rows = store.look(() => audit.all(before, limit + 1));
      const shown = rows.slice(0, limit);
      return {
        items: shown.map(toEntry),
        cursor: rows.length > limit ? String(shown.at(-1)?.number) : undefined,
      };
    },
  };
}

function toEntry(row: Record<string, unknown>): AuditEntry {
  return {
    id: String(row.id),
    at: Number(row.at),
    what: row.what as AuditEntry['what'],
    who: String(row.who),
    why: String(row.why),
    subjects: JSON.parse(String(row.subjects)),
    count: Number(row.count),
  };
}
