import { type AuditEntry, type AuditQuestion, type Subject, subjectKinds } from '@holdfast/contracts';
import { canUndo, undo } from '@holdfast/events';
import { actFlags, actOf } from '../acts.ts';
import { tryAssemblyId } from '../assembly-ids.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { many } from '../count-text.ts';
import { didYouMean } from '../did-you-mean.ts';
import { countOf, momentOf, textOf } from '../given-values.ts';
import { cursorOf, pasteable } from '../page-cursor.ts';
import { allPages, eventIds, idsIn, tryOperationId } from '../parked-ids.ts';
import { shortNames, wholeId } from '../short-ids.ts';
import { type OpenStore, storeFlag, withStore } from '../store.ts';
import { dim } from '../styled-text.ts';
import { table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { ago } from '../times.ts';

export const auditLog: Command = {
  name: 'audit',
  summary: 'who changed what and why, and undo it',
  flags: {
    ...storeFlag,
    of: { value: 'subject', says: 'about this: event:<id>, topic:orders, policy:payment; or the name alone' },
    what: { value: 'act', many: true, says: 'discard, replay, edit, control_set, rule_set, …' },
    since: { value: 'date or age', says: 'since: 2026-01-31, or 2h' },
    until: { value: 'date or age', says: 'before' },
    limit: { value: 'count', says: 'at most so many; 20 unless given' },
    cursor: { value: 'cursor', says: 'the page after this one' },
    undo: { value: 'entry', says: 'undo this act (with --why)' },
    ...actFlags,
    who: { value: 'name', says: 'by this person; with --undo, your name' },
  },
  examples: [
    'audit --since 1h',
    'audit --who ann --what discard',
    'audit --of topic:orders',
    "audit --undo 0f43d1aa --why 'the wrong group'",
  ],
  run: (given, terminal) =>
    withStore(given, terminal, (engine) => {
      const undone = textOf(given, 'undo');
      return undone === undefined
        ? list(engine, given, terminal)
        : undoEntry(engine, undone, given, terminal);
    }),
};

async function list(engine: OpenStore, given: Given, terminal: Terminal): Promise<number> {
  const { items, cursor } = await entries(engine, given);
  if (given.flags.json) {
    for (const item of items) terminal.out(JSON.stringify({ ...item, canUndo: canUndo(item) }));
    if (cursor !== undefined) terminal.err(`holdfast: there are more, with --cursor ${pasteable(cursor)}`);
    return 0;
  }
  if (items.length === 0) {
    terminal.out('Nothing was changed.');
    return 0;
  }
  const { now } = await engine.controls.active();
  const short = shortNames(
    items.map(({ id }) => id),
    terminal,
  );
  const shortName = shortNames(
    items.flatMap(({ subjects }) => subjects.slice(0, 1).map((each) => parts(each)[1])),
    terminal,
  );
  const shortSubject = (of: Subject) => parts(of)[0] + shortName(parts(of)[1]);
  const rows = items.map((item) => [
    ...[ago(item.at, now, terminal), item.who, item.what, subjectsText(item, shortSubject), item.why],
    item.undoneBy === undefined ? (canUndo(item) ? short(item.id) : '') : dim('undone'),
  ]);
  const headings = [
    { heading: 'WHEN', whole: true },
    ...['WHO', 'WHAT', 'OF', 'WHY'],
    { heading: 'UNDO', whole: true },
  ] as const;
  terminal.out(table(headings, rows, terminal.columns));
  if (cursor !== undefined) terminal.out(`\nmore with --cursor ${pasteable(cursor)}`);
  return 0;
}

/** The names of the acts that this package and the stores record. Other programs can record other acts. */
const knownActs = [
  ...['discard', 'restore', 'keep', 'replay', 'undo', 'edit', 'operation_stopped', 'operation_rate'],
  ...['rule_set', 'rule_removed', 'control_set', 'control_removed', 'retry_now', 'unblock', 'retention'],
  ...['assembly_cancel', 'assembly_edit', 'assembly_fork', 'assembly_resume', 'assembly_signal', 'sign_in'],
];

/** Throws a `UsageError` for an act that nobody has recorded: it is probably misspelt. */
async function assertKnownAct(act: string, audit: OpenStore['audit']): Promise<void> {
  if (knownActs.includes(act)) return;
  if ((await audit.list({ what: act }, { limit: 1 })).items.length > 0) return;
  const meant = didYouMean(act, knownActs) || `; there are: ${knownActs.join(', ')}.`;
  throw new UsageError(`--what: no act here is "${act}"${meant}`);
}

async function entries(
  engine: OpenStore,
  given: Given,
): Promise<{ items: readonly AuditEntry[]; cursor: string | undefined }> {
  const { audit } = engine;
  const [who, from, to] = [textOf(given, 'who'), momentOf(given, 'since'), momentOf(given, 'until')];
  const what = given.lists.what ?? [];
  for (const each of what) await assertKnownAct(each, audit);
  const question: AuditQuestion = {
    ...(who !== undefined && { who }),
    ...(what.length > 0 && { what }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  };
  const cursor = cursorOf(given);
  const limit = countOf(given, 'limit', 1) ?? 20;
  const shortened = textOf(given, 'of');
  const of = shortened === undefined ? undefined : await wholeSubject(shortened, engine);
  if (of === undefined || isSubject(of)) {
    const page = { limit, ...(cursor !== undefined && { cursor }) };
    return audit.list({ ...question, ...(of !== undefined && { subject: of }) }, page);
  }
  if (cursor !== undefined)
    throw new UsageError(`--cursor: say --of with its kind, such as event:${of}, to read more pages.`);
  const found = new Map<string, AuditEntry>();
  for (const kind of subjectKinds) {
    const page = await audit.list({ ...question, subject: `${kind}:${of}` }, { limit });
    for (const item of page.items) found.set(item.id, item);
  }
  return { items: [...found.values()].sort((a, b) => b.at - a.at).slice(0, limit), cursor: undefined };
}

/** Returns a subject with its whole id. The user may have shortened the id of an event, operation or assembly. */
async function wholeSubject(given: string, { triage, journal }: OpenStore): Promise<string> {
  const [, kind = '', name = ''] = /^(?:(event|operation|assembly):)?(.*)$/s.exec(given) ?? [];
  if (kind === '' && isSubject(given)) return given;
  if (kind === 'assembly') return `assembly:${(journal && (await tryAssemblyId(name, journal))) ?? name}`;
  const [event = name] = kind === 'operation' ? [] : await eventIds(triage, [name]);
  const whole = event === name && kind !== 'event' ? await tryOperationId(triage, name) : event;
  return `${kind === '' ? '' : `${kind}:`}${whole ?? name}`;
}

function isSubject(text: string): text is Subject {
  return subjectKinds.some((kind) => text.startsWith(`${kind}:`));
}

async function undoEntry(
  engine: OpenStore,
  given: string,
  flags: Given,
  terminal: Terminal,
): Promise<number> {
  const { audit } = engine;
  const all = idsIn(
    allPages((page) => audit.list({}, page)),
    'id',
  );
  const id = (await audit.get(given)) ? given : await wholeId('entries', given, all);
  if (id === undefined) throw new UsageError(`--undo: there is no entry "${given}" in the audit log.`);
  const changed = await undo(engine, id, actOf(flags, terminal));
  const entry = await audit.get(id);
  const isOfEvents = entry?.subjects.some((subject) => subject.startsWith('operation:')) === true;
  const text = isOfEvents ? `${id} is undone: ${many(changed, 'event')} changed.` : `${id} is undone.`;
  terminal.out(flags.flags.json ? JSON.stringify({ undone: id, changed }) : text);
  return 0;
}

/** The count is left out for a control (such as a pause): its id already names the topic or policy. */
function subjectsText({ subjects, count, what }: AuditEntry, short: (of: Subject) => string): string {
  const isOfMany = what !== 'control_set' && what !== 'control_removed' && count > 1;
  return `${subjects[0] === undefined ? '' : short(subjects[0])}${isOfMany ? ` (${count})` : ''}`;
}

/** Only the ids of events, operations and assemblies are long, so only these are split off and shortened. */
function parts(of: Subject): [kind: string, id: string] {
  const [, kind = '', id = ''] = /^((?:event|operation|assembly):)(.*)$/s.exec(of) ?? [];
  return kind === '' ? [of, ''] : [kind, id];
}
