import {
  type Audit,
  type AuditEntry,
  type AuditQuestion,
  assertAuditEntry,
  assertAuditQuestion,
  assertUndoable,
  auditEntryOf,
  type NewAuditEntry,
} from '../audit.ts';
import type { Act } from '../controls.ts';
import { latestFirst, pageOf, type SharedState } from './shared-state.ts';

export function memoryAudit(shared: SharedState): Audit {
  const { storage } = shared;

  return {
    async record(entry) {
      assertAuditEntry(entry);
      return shared.write(() => writeAudit(shared, entry));
    },

    async get(id) {
      return storage.audit.find((entry) => entry.id === id);
    },

    async list(question, request) {
      assertAuditQuestion(question);
      const found = storage.audit.filter((entry) => isAbout(question, entry)).toReversed();
      return pageOf(found, request, ({ id }) => [0, id], latestFirst);
    },
  };
}

/**
 * Writes an audit entry. Call it before the change itself: it throws if the entry to undo cannot be undone.
 */
export function writeAudit(shared: SharedState, entry: NewAuditEntry): AuditEntry {
  const { audit } = shared.storage;
  assertMayUndo(shared, entry);
  const { before } = entry;
  // Copy `before` as a database would, so that later changes of the object do not change the log.
  const copied = before === undefined ? {} : { before: JSON.parse(JSON.stringify(before)) };
  const written = auditEntryOf({ ...entry, ...copied }, shared.newId(), shared.now());
  const undone = audit.findIndex(({ id }) => id === entry.undoes);
  if (undone >= 0) audit[undone] = { ...audit[undone]!, undoneBy: written.id };
  audit.push(written);
  if (audit.length > shared.bounds.auditMax) audit.shift();
  return written;
}

export function assertMayUndo({ storage }: SharedState, { undoes }: Act): void {
  if (undoes === undefined) return;
  assertUndoable(
    undoes,
    storage.audit.find(({ id }) => id === undoes),
  );
}

function isAbout(question: AuditQuestion, entry: AuditEntry): boolean {
  const { who, what, subject, from = -Infinity, to = Infinity } = question;
  if (who !== undefined && who !== entry.who) return false;
  if (what !== undefined && !(typeof what === 'string' ? [what] : what).includes(entry.what)) return false;
  if (subject !== undefined && !entry.subjects.includes(subject)) return false;
  return entry.at >= from && entry.at < to;
}
