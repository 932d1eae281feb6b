import {
  type Act,
  assertBreakdown,
  assertBucketMs,
  assertEdit,
  assertEditVersion,
  assertFilter,
  assertReason,
  type Breakdown,
  type BreakdownBy,
  editDiff,
  filterIsCounted,
  jsonWithInfinity,
  lookMaxOf,
  type NewAuditEntry,
  type Operations,
  type ParkedFilter,
  type ParkedGroup,
  type Place,
  placeIn,
  type SizeLimits,
  subject,
  type Triage,
  TriageError,
} from '@holdfast/contracts';
import type { AuditLog } from './audit-log.ts';
import type { ParkedCounts } from './parked-counts.ts';
import type { ParkedSearch } from './parked-search.ts';
import { type ParkingLot, summaryColumns, toSummary } from './parking-lot.ts';
import type { Store } from './store.ts';

export interface TriageParts {
  readonly store: Store;
  readonly audit: AuditLog;
  readonly lot: ParkingLot;
  readonly counts: ParkedCounts;
  readonly search: ParkedSearch;
  readonly operations: Operations;
  readonly limits: SizeLimits;
}

export function sqliteTriage(parts: TriageParts): Triage {
  const { store, audit, lot, counts, search, operations, limits } = parts;
  const edit = store.prepare(`
    UPDATE holdfast_parked SET payload = ?2, headers = ?3, original_payload = ?4, original_headers = ?5, edits = ?6,
      is_edited = 1, version = version + 1 WHERE id = ?1`);
  const rules = store.prepare('SELECT rule FROM holdfast_rule ORDER BY number');
  const findRule = store.prepare('SELECT rule FROM holdfast_rule WHERE name = ?');
  const setRule = store.prepare(`
    INSERT INTO holdfast_rule (name, rule) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET rule = excluded.rule`);
  const removeRule = store.prepare('DELETE FROM holdfast_rule WHERE name = ?');

  async function groupsOf(filter: ParkedFilter, after: Place, limit: number): Promise<ParkedGroup[]> {
    if (filterIsCounted(filter)) return store.read(() => counts.groups(filter, after, limit));
    const [count, last] = after;
    const left = (await search.groups(filter)).filter(
      (group) => group.count < count || (group.count === count && group.fingerprint > last),
    );
    const groups: ParkedGroup[] = [];
    for (const group of left.slice(0, limit)) {
      const { fingerprint } = group;
      const columns = 'parked_at, id, reason, message';
      const [latest] = (await search.list({ ...filter, fingerprint }, columns, undefined, 1)).rows;
      groups.push({ ...group, reason: String(latest?.reason ?? ''), message: String(latest?.message ?? '') });
    }
    return groups;
  }

  async function valuesOf(filter: ParkedFilter, by: BreakdownBy): Promise<Map<string | undefined, number>> {
    const isCounted = by === 'topic' || by === 'status' || by === 'fingerprint';
    return isCounted && filterIsCounted(filter)
      ? store.look(() => counts.breakdown(filter, by))
      : search.breakdown(filter, by);
  }

  function noteRule(what: NewAuditEntry['what'], name: string, act: Act, wall: number): boolean {
    const row = findRule.get(name);
    if (!row && what === 'rule_removed') return false;
    const before = row && JSON.parse(String(row.rule));
    audit.write({ ...act, what, subjects: [subject('rule', name)], before }, wall);
    return true;
  }

  return {
    async put(events) {
      return store.write((now, wall) => events.map((event) => lot.park(event, now, wall)));
    },

    async get(id) {
      return store.look((now, wall) => lot.find(id, wall - now));
    },

    async list(filter, request) {
      assertFilter(filter);
      const { limit, cursor } = request;
      const after = cursor === undefined ? undefined : placeIn(cursor);
      const lookMax = Math.floor(lookMaxOf(request));
      const { rows, stopped } = await search.list(filter, summaryColumns, after, limit + 1, lookMax);
      const { now } = store.time();
      const items = rows.slice(0, limit).map((row) => toSummary(row, now));
      const last = items.at(-1);
      if (rows.length > limit && last) return { items, cursor: JSON.stringify([last.parkedAt, last.id]) };
      return stopped
        ? { items, cursor: JSON.stringify(stopped.at), looked: stopped.looked }
        : { items, cursor: undefined };
    },

    async count(filter) {
      assertFilter(filter);
      return filterIsCounted(filter) ? store.look(() => counts.count(filter)) : search.count(filter);
    },

    async groups(filter, { limit, cursor }) {
      assertFilter(filter);
      const after: Place = cursor === undefined ? [Infinity, ''] : placeIn(cursor);
      const found = await groupsOf(filter, after, limit + 1);
      const items = found.slice(0, limit);
      const last = items.at(-1);
      const isLast = found.length <= limit || last === undefined;
      return { items, cursor: isLast ? undefined : JSON.stringify([last.count, last.fingerprint]) };
    },

    async breakdown(filter, by, limit): Promise<Breakdown> {
      assertFilter(filter);
      assertBreakdown(by, limit);
      const counted = [...(await valuesOf(filter, by))]
        .map(([value, count]) => ({ value, count }))
        .sort((a, b) => b.count - a.count || ((a.value ?? '') < (b.value ?? '') ? -1 : 1));
      const others = counted.slice(limit).reduce((sum, { count }) => sum + count, 0);
      return { items: counted.slice(0, limit), others };
    },

    async histogram(filter, bucketMs) {
      assertFilter(filter);
      assertBucketMs(bucketMs);
      return search.histogram(filter, bucketMs);
    },

    async edit(id, changes, act) {
      assertReason(act);
      assertEdit(changes, limits);
      return store.write((now, wall) => {
        const event = lot.find(id, wall - now);
        if (!event) return undefined;
        if (event.operation !== undefined) throw new TriageError('BUSY', `a replay has event ${id}`);
        assertEditVersion(id, event.version, changes);
        audit.write({ ...act, what: 'edit', subjects: [subject('event', id)] }, wall);
        const { payload, headers, edits, original = { payload, headers } } = event;
        const edited = { payload: changes.payload ?? payload, headers: changes.headers ?? headers };
        const notes = [...edits, { ...act, at: wall, changes: editDiff(event, edited) }];
        edit.run(
          ...[id, edited.payload, JSON.stringify(edited.headers)],
          ...[original.payload, JSON.stringify(original.headers), JSON.stringify(notes)],
        );
        return lot.find(id, wall - now);
      });
    },

    async resolve(replayed) {
      return store.write(() => replayed.map(({ id, operation }) => lot.resolve(id, operation)));
    },

    operations,

    async rules() {
      return store.look(() => rules.all().map(({ rule }) => JSON.parse(String(rule))));
    },

    async setRule(rule, act) {
      assertFilter(rule.filter);
      assertReason(act);
      await store.write((_, wall) => {
        noteRule('rule_set', rule.name, act, wall);
        setRule.run(rule.name, jsonWithInfinity(rule));
      });
    },

    async removeRule(name, act) {
      assertReason(act);
      return store.write((_, wall) => {
        const isThere = noteRule('rule_removed', name, act, wall);
        if (isThere) removeRule.run(name);
        return isThere;
      });
    },
  };
}
