import { EngineFullError, TriageError } from '../contract-errors.ts';
import type { Act } from '../controls.ts';
import { editDiff } from '../edit-diff.ts';
import { assertDurationMs } from '../for-engines.ts';
import { assertFilter, assertReason, fingerprintOf, matches, type ParkedFilter } from '../parked-filter.ts';
import { assertEdit } from '../size-limits.ts';
import type {
  AuditEntry,
  NewlyParked,
  ParkedEvent,
  ParkedGroup,
  ParkedSummary,
  ReplayCounts,
  Triage,
} from '../triage.ts';
import { memoryReplays } from './replays.ts';
import { latestFirst, pageOf, type SharedState } from './shared-state.ts';
import type { MemoryStorage } from './storage.ts';

/** An audit entry lists the first 100 ids of a change, and the number of all ids. */
const subjectsMax = 100;

export function memoryTriage(shared: SharedState): Triage {
  const { storage } = shared;

  function found(filter: ParkedFilter): ParkedEvent[] {
    const events = [...storage.parked.values()].filter((event) => matches(filter, event));
    return events.sort((a, b) => b.parkedAt - a.parkedAt || (a.id < b.id ? 1 : -1));
  }

  /**
   * Updates the given events if they have this `status` and belong to no replay, and writes an audit entry. Returns
   * true for each updated event.
   */
  function change(
    what: AuditEntry['what'],
    ids: readonly string[],
    act: Act,
    status: ParkedEvent['status'],
    update: (now: number) => Partial<ParkedEvent>,
  ): boolean[] {
    assertReason(act);
    return shared.write((now) => {
      const changed = ids.map((id) => {
        const event = storage.parked.get(id);
        if (event?.status !== status || event.operation !== undefined) return false;
        storage.parked.set(id, { ...event, ...update(now) });
        return true;
      });
      const subjects = ids.filter((_, index) => changed[index]);
      if (subjects.length > 0) writeAudit(shared, what, subjects, act);
      return changed;
    });
  }

  return {
    async put(events) {
      return shared.write((now) => events.map((event) => park(shared, event, now)));
    },

    async get(id) {
      return storage.parked.get(id);
    },

    async list(filter, request) {
      const page = pageOf(found(filter), request, ({ parkedAt, id }) => [parkedAt, id], latestFirst);
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

    async edit(id, edit, act) {
      assertReason(act);
      assertEdit(edit, shared.limits);
      return shared.write((at) => {
        const event = storage.parked.get(id);
        if (!event) return undefined;
        if (event.operation !== undefined) throw new TriageError('BUSY', `a replay has event ${id}`);
        const { payload, headers, edits, original = { payload, headers } } = event;
        const edited = { payload, headers, ...edit };
        const note = { ...act, at, changes: editDiff(event, edited) };
        const changed = { ...event, ...edited, original, edits: [...edits, note] };
        storage.parked.set(id, changed);
        writeAudit(shared, 'edit', [id], act);
        return changed;
      });
    },

    async discard(ids, act) {
      return change('discard', ids, act, 'parked', () => ({ status: 'discarded', discarded: act }));
    },

    async restore(ids, act) {
      return change('restore', ids, act, 'discarded', () => ({ status: 'parked', discarded: undefined }));
    },

    async keep(ids, keepMs, act) {
      assertDurationMs('keepMs', keepMs);
      return change('keep', ids, act, 'parked', (now) => ({ removedAt: now + keepMs }));
    },

    async resolve(replayed) {
      return shared.write(() => replayed.map(({ id, operation }) => resolve(storage, id, operation)));
    },

    replays: memoryReplays(shared),

    async rules() {
      return [...storage.rules.values()];
    },

    async setRule(rule, act) {
      assertFilter(rule.filter);
      assertReason(act);
      shared.write(() => {
        storage.rules.set(rule.name, rule);
        writeAudit(shared, 'rule_set', [rule.name], act);
      });
    },

    async removeRule(name, act) {
      assertReason(act);
      return shared.write(() => {
        if (!storage.rules.delete(name)) return false;
        writeAudit(shared, 'rule_removed', [name], act);
        return true;
      });
    },

    async audit(request) {
      return pageOf(storage.audit.toReversed(), request, ({ id }) => [0, id], latestFirst);
    },
  };
}

/** Parks an event for the first time, or again because its replay failed. False: the event is parked already. */
export function park(shared: SharedState, { keepMs, ...event }: NewlyParked, now: number): boolean {
  const { storage, bounds } = shared;
  const known = storage.parked.get(event.id);
  const failedAgain = known?.operation !== undefined && known.operation === event.replay;
  if (known && !failedAgain && known.status !== 'resolved') return false;
  if (!known && storage.parked.size >= bounds.parkedMax)
    throw new EngineFullError('parked events', bounds.parkedMax);
  if (failedAgain) countOutcome(storage, known, 'failedAgain');
  storage.parked.set(event.id, {
    ...event,
    status: 'parked',
    parkedAt: now,
    parkings: (known?.parkings ?? 0) + 1,
    removedAt: now + (keepMs ?? bounds.keepParkedMs),
    operation: undefined,
    original: known?.original,
    edits: known?.edits ?? [],
    discarded: undefined,
  });
  return true;
}

/** Records that the replay of an event succeeded. False: the event does not belong to this replay operation. */
export function resolve(storage: MemoryStorage, id: string, operation: string | undefined): boolean {
  const event = storage.parked.get(id);
  if (operation === undefined || event?.operation !== operation) return false;
  storage.parked.set(id, { ...event, status: 'resolved', operation: undefined });
  countOutcome(storage, event, 'succeeded');
  return true;
}

/**
 * Adds the result of a replayed event to its operation. If the release of the event is not recorded yet, the release is
 * counted too.
 */
function countOutcome(
  storage: MemoryStorage,
  event: ParkedEvent,
  outcome: 'succeeded' | 'failedAgain',
): void {
  count(storage, event.operation, { released: event.status === 'replaying' ? 0 : 1, [outcome]: 1 });
}

/** Adds `more` to the counts of a replay operation. */
export function count(storage: MemoryStorage, id: string | undefined, more: Partial<ReplayCounts>): void {
  const operation = id === undefined ? undefined : storage.operations.get(id);
  if (!operation) return;
  const counts = { ...operation.counts };
  for (const name of Object.keys(more) as (keyof ReplayCounts)[]) counts[name] += more[name] ?? 0;
  storage.operations.set(operation.id, { ...operation, counts });
}

export function writeAudit(
  shared: SharedState,
  what: AuditEntry['what'],
  subjects: readonly string[],
  act: Act,
): void {
  const { audit } = shared.storage;
  const named = subjects.slice(0, subjectsMax);
  audit.push({ id: shared.newId(), at: shared.now(), what, subjects: named, count: subjects.length, ...act });
  if (audit.length > shared.bounds.auditMax) audit.shift();
}

function summaryOf(event: ParkedEvent, now: number): ParkedSummary {
  const { id, topic, type, key, tenant, status, parkedAt, parkings, operation, diagnosis } = event;
  const { reason, message, stop, finalAttempt } = diagnosis;
  return {
    ...{
      id,
      topic,
      type,
      key,
      tenant,
      status,
      parkedAt,
      parkings,
      operation,
      reason,
      message,
      stop,
      finalAttempt,
    },
    fingerprint: fingerprintOf(event),
    removedInMs: Math.max(0, event.removedAt - now),
    edited: event.edits.length > 0,
  };
}

/** Groups events by fingerprint. `events` must be sorted with the latest first. */
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
