import { OptionsError } from 'holdfast';
import { TooLargeError, TriageError } from './contract-errors.ts';
import type { Act } from './controls.ts';
import { assertName } from './for-engines.ts';
import type { Page, PageRequest } from './page.ts';
import { assertReason } from './parked-filter.ts';

/**
 * The log of changes by people, with the reasons. An engine writes an entry for each change of its own data,
 * in the same transaction. Other changes are written with `record`.
 */
export interface Audit {
  /** Writes an entry. Resolves when the entry is stored. */
  record(entry: NewAuditEntry): Promise<AuditEntry>;
  get(id: string): Promise<AuditEntry | undefined>;
  /** Lists entries, the latest first. */
  list(question: AuditQuestion, page: PageRequest): Promise<Page<AuditEntry>>;
}

/**
 * The thing that an operator changed, as `kind:name`, for example `event:0193…`, `topic:orders` or
 * `policy:payment`.
 */
export type Subject = `${SubjectKind}:${string}`;
/** The kinds of things that an operator can act on. */
export const subjectKinds = [
  'event',
  'operation',
  'topic',
  'control',
  'rule',
  'policy',
  'assembly',
  'gateway',
  'session',
] as const;
/** The kinds of things that an operator can act on. */
export type SubjectKind = (typeof subjectKinds)[number];

/**
 * The names of the changes that engines write to the audit log themselves. `record` accepts other names, too.
 */
export type AuditedAct =
  | 'edit'
  | 'discard'
  | 'restore'
  | 'keep'
  | 'replay'
  | 'undo'
  | 'operation_stopped'
  | 'operation_rate'
  | 'rule_set'
  | 'rule_removed'
  | 'control_set'
  | 'control_removed'
  | 'retry_now'
  | 'unblock'
  | 'retention'
  | 'assembly_cancel'
  | 'assembly_edit'
  | 'assembly_fork'
  | 'assembly_resume'
  | 'assembly_signal';

/** An audit entry to be stored. The engine adds the id and the time. */
export interface NewAuditEntry extends Act {
  readonly what: AuditedAct | (string & {});
  /** Only the first 100 subjects are stored. */
  readonly subjects: readonly Subject[];
  /** How many things were changed. Give it if `subjects` does not list all of them. Default: the number of subjects. */
  readonly count?: number;
  /** The state before the change, if an undo needs it. It is stored as JSON of at most 16 KiB. */
  readonly before?: unknown;
}

/** A stored audit entry: one change by an operator. Only `undoneBy` is ever changed, once. */
export interface AuditEntry extends Act {
  readonly id: string;
  /** Epoch ms by the store's clock. */
  readonly at: number;
  readonly what: AuditedAct | (string & {});
  readonly subjects: readonly Subject[];
  readonly count: number;
  readonly before: unknown;
  /** The id of the audit entry that undid this change; `undefined`: the change was not undone. */
  readonly undoneBy: string | undefined;
}

/** Selects audit entries. An entry matches if all given fields match. */
export interface AuditQuestion {
  readonly who?: string;
  readonly what?: string | readonly string[];
  readonly subject?: Subject;
  /** Only entries that were written at this time or later, epoch ms. */
  readonly from?: number;
  /** Only entries that were written before this time, epoch ms. */
  readonly to?: number;
}

/** The most subjects of one entry. */
export const subjectsMax = 100;
const whatMax = 100;
/** The most bytes of `before` that `record` accepts, as JSON in UTF-8. */
const beforeBytesMax = 16 * 1024;

/** Returns the subject of an audit entry: `subject('topic', 'orders')` is `topic:orders`. */
export function subject(kind: SubjectKind, name: string): Subject {
  return `${kind}:${name}`;
}

/** Throws for an entry that `record` does not accept. */
export function assertAuditEntry(entry: NewAuditEntry): void {
  assertReason(entry);
  const { what, subjects, count, undoes, before } = entry;
  if (typeof what !== 'string' || what === '' || what.length > whatMax)
    throw new OptionsError('what', what, `a text of 1 to ${whatMax} characters`);
  assertName('what', what);
  if (!Array.isArray(subjects)) throw new OptionsError('subjects', subjects, 'a list of subjects');
  for (const each of subjects) assertSubject('subjects', each);
  if (count !== undefined && !(Number.isSafeInteger(count) && count >= 0))
    throw new OptionsError('count', count, 'a whole number from 0');
  if (undoes !== undefined && typeof undoes !== 'string')
    throw new OptionsError('undoes', undoes, 'the id of an audit entry');
  const bytes = before === undefined ? 0 : new TextEncoder().encode(JSON.stringify(before)).length;
  if (bytes > beforeBytesMax) throw new TooLargeError('before in bytes', bytes, beforeBytesMax);
}

/** Throws if `question` has an unknown field or a value of the wrong type. */
export function assertAuditQuestion(question: AuditQuestion): void {
  for (const [name, value] of Object.entries(question)) {
    if (value === undefined) continue;
    if (name === 'subject') assertSubject(name, value);
    else if (name === 'from' || name === 'to') {
      if (typeof value !== 'number' || Number.isNaN(value))
        throw new OptionsError(name, value, 'a time, in epoch ms');
    } else if (name === 'who' || name === 'what') {
      const texts: readonly unknown[] = name === 'what' && Array.isArray(value) ? value : [value];
      if (!texts.every((text) => typeof text === 'string'))
        throw new OptionsError(name, value, name === 'what' ? 'a text, or a list of texts' : 'a text');
    } else throw new OptionsError('question', name, 'one of who, what, subject, from, to');
  }
}

function assertSubject(path: string, value: unknown): void {
  const [kind, ...name] = typeof value === 'string' ? value.split(':') : [];
  if (!subjectKinds.includes(kind as SubjectKind) || name.join(':') === '')
    throw new OptionsError(path, value, `kind:name, with a kind of ${subjectKinds.join(', ')}`);
  assertName(path, value as string);
}

/** Returns the audit entry that an engine stores. Only the first 100 subjects are kept. */
export function auditEntryOf(entry: NewAuditEntry, id: string, at: number): AuditEntry {
  const { who, why, undoes, what, subjects, count = subjects.length, before } = entry;
  return {
    ...{ id, at, who, why, ...(undoes !== undefined && { undoes }), what },
    ...{ subjects: subjects.slice(0, subjectsMax), count, before, undoneBy: undefined },
  };
}

/**
 * Throws unless the audit entry with the id `undoes` can be undone. `entry` is that stored entry;
 * `undefined`: there is none.
 */
export function assertUndoable(undoes: string, entry: Pick<AuditEntry, 'undoneBy'> | undefined): void {
  if (!entry) throw new TriageError('NOT_UNDOABLE', `there is no audit entry ${undoes}`);
  if (entry.undoneBy !== undefined)
    throw new TriageError('NOT_UNDOABLE', `entry ${entry.undoneBy} has undone audit entry ${undoes} already`);
}
