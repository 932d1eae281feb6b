import { type NewAuditEntry, type Subject, subject } from '../audit.ts';
import { TriageError } from '../contract-errors.ts';
import type { Act } from '../controls.ts';
import { editDiff } from '../edit-diff.ts';
import { lookMaxOf, type Page, type PageRequest, placeIn } from '../page.ts';
import {
  assertFilter,
  assertReason,
  fingerprintOf,
  headerOf,
  matches,
  type ParkedFilter,
  propertyOf,
} from '../parked-filter.ts';
import { assertEdit } from '../size-limits.ts';
import {
  assertBreakdown,
  assertBucketMs,
  assertEditVersion,
  type BreakdownBy,
  bucketsMax,
  type ParkedEvent,
  type ParkedGroup,
  type ParkedSummary,
  type Triage,
  type TriageRule,
} from '../triage.ts';
import { writeAudit } from './audit.ts';
import { memoryOperations } from './operations.ts';
import { park, resolve } from './parking.ts';
import { latestFirst, pageOf, type SharedState } from './shared-state.ts';

export function memoryTriage(shared: SharedState): Triage {
  const { storage } = shared;

  function latest(): ParkedEvent[] {
    return [...storage.parked.values()].sort((a, b) => b.parkedAt - a.parkedAt || (a.id < b.id ? 1 : -1));
  }

  function found(filter: ParkedFilter): ParkedEvent[] {
    return latest().filter((event) => matches(filter, event));
  }

  return {
    async put(events) {
      return shared.write((now) => events.map((event) => park(shared, event, now)));
    },

    async get(id) {
      return storage.parked.get(id);
    },

    async list(filter, request) {
      const page = search(latest(), filter, request);
      return { ...page, items: page.items.map((event) => summaryOf(event, shared.now())) };
    },

    async count(filter) {
      return found(filter).length;
    },

    async groups(filter, request) {
      const groups = groupsOf(found(filter)).sort(
        (a, b) => b.count - a.count || (a.fingerprint < b.fingerprint ? -1 : 1),
      );
      return pageOf(
        groups,
        request,
        ({ count, fingerprint }) => [count, fingerprint],
        ([count, text], [other, otherText]) => count < other || (count === other && text > otherText),
      );
    },

    async breakdown(filter, by, limit) {
      assertFilter(filter);
      assertBreakdown(by, limit);
      const events = found(filter);
      const counted = [...Map.groupBy(events, (event) => breakdownValue(event, by))]
        .map(([value, { length }]) => ({ value, count: length }))
        .sort((a, b) => b.count - a.count);
      const items = counted.slice(0, limit);
      return { items, others: events.length - items.reduce((sum, { count }) => sum + count, 0) };
    },

    async histogram(filter, bucketMs) {
      assertFilter(filter);
      assertBucketMs(bucketMs);
      return [...Map.groupBy(found(filter), ({ parkedAt }) => Math.floor(parkedAt / bucketMs) * bucketMs)]
        .map(([at, { length }]) => ({ at, count: length }))
        .sort((a, b) => a.at - b.at)
        .slice(-bucketsMax);
    },

    async edit(id, edit, act) {
      assertReason(act);
      assertEdit(edit, shared.limits);
      return shared.write((at) => {
        const event = storage.parked.get(id);
        if (!event) return undefined;
        if (event.operation !== undefined) throw new TriageError('BUSY', `a replay has event ${id}`);
        assertEditVersion(id, event.version, edit);
        writeAudit(shared, { ...act, what: 'edit', subjects: [subject('event', id)] });
        const { original = { payload: event.payload, headers: event.headers } } = event;
        const { payload = event.payload, headers = event.headers } = edit;
        const note = { ...act, at, changes: editDiff(event, { payload, headers }) };
        const version = event.version + 1;
        const changed = { ...event, payload, headers, version, original, edits: [...event.edits, note] };
        storage.parked.set(id, changed);
        return changed;
      });
    },

    async resolve(replayed) {
      return shared.write(() => replayed.map(({ id, operation }) => resolve(storage, id, operation)));
    },

    operations: memoryOperations(shared),

    async rules() {
      return [...storage.rules.values()];
    },

    async setRule(rule, act) {
      assertFilter(rule.filter);
      assertReason(act);
      shared.write(() => {
        writeAudit(shared, ruleEntry('rule_set', rule.name, act, storage.rules.get(rule.name)));
        storage.rules.set(rule.name, rule);
      });
    },

    async removeRule(name, act) {
      assertReason(act);
      return shared.write(() => {
        const rule = storage.rules.get(name);
        if (!rule) return false;
        writeAudit(shared, ruleEntry('rule_removed', name, act, rule));
        return storage.rules.delete(name);
      });
    },
  };
}

function ruleEntry(
  what: 'rule_set' | 'rule_removed',
  name: string,
  act: Act,
  before: TriageRule | undefined,
): NewAuditEntry {
  const subjects: Subject[] = [subject('rule', name)];
  return { ...act, what, subjects, before };
}

/** Returns one page of the matching events. It reads at most `lookMax` stored events, the latest first. */
function search(
  stored: readonly ParkedEvent[],
  filter: ParkedFilter,
  request: PageRequest,
): Page<ParkedEvent> {
  const lookMax = lookMaxOf(request);
  const from = request.cursor === undefined ? undefined : placeIn(request.cursor);
  const unread = from ? stored.filter((event) => latestFirst(placeOf(event), from)) : stored;
  const read = unread.slice(0, lookMax);
  const page = pageOf(
    read.filter((event) => matches(filter, event)),
    { limit: request.limit },
    placeOf,
    latestFirst,
  );
  if (page.cursor !== undefined || unread.length === read.length) return page;
  return { ...page, cursor: JSON.stringify(placeOf(read.at(-1)!)), looked: read.length };
}

function placeOf({ parkedAt, id }: ParkedEvent): [number, string] {
  return [parkedAt, id];
}

function breakdownValue(event: ParkedEvent, by: BreakdownBy): string | undefined {
  if (typeof by === 'object') return headerOf(event, by.header);
  return by === 'status' ? event.status : propertyOf(event, by);
}

function summaryOf(event: ParkedEvent, now: number): ParkedSummary {
  const { id, topic, type, key, tenant, status, parkedAt, parkings, operation, diagnosis } = event;
  const { reason, message, stop, finalAttempt, consumer } = diagnosis;
  return {
    ...{ id, topic, type, key, tenant, status, parkedAt, parkings, operation },
    ...{ reason, message, stop, finalAttempt, consumer },
    replayedBy: event.replayedBy,
    version: event.version,
    fingerprint: fingerprintOf(event),
    removedInMs: Math.max(0, event.removedAt - now),
    edited: event.edits.length > 0,
  };
}

/** `events` must be sorted, the latest first. */
function groupsOf(events: readonly ParkedEvent[]): ParkedGroup[] {
  return [...Map.groupBy(events, fingerprintOf)].map(([fingerprint, members]) => {
    const latest = members[0]!;
    return {
      fingerprint,
      reason: latest.diagnosis.reason,
      message: latest.diagnosis.message,
      count: members.length,
      firstAt: members.at(-1)!.parkedAt,
      lastAt: latest.parkedAt,
      topics: [...new Set(members.map(({ topic }) => topic))],
    };
  });
}
