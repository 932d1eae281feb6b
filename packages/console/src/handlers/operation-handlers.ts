import {
  type AuditEntry,
  defaultReplay,
  type Operation,
  type OperationRequest,
  type ParkedFilter,
  type PresentProcess,
  setRate,
  stopOperation,
  subject,
} from '@holdfast/contracts';
import { type OperationRunner, operations, spanText } from '@holdfast/events';
import type { Clock } from 'holdfast';
import type { z } from 'zod';
import type { check, operation, operationRoutes } from '../api/operations.ts';
import type { Filter } from '../api/parked.ts';
import type { DeepReadonly } from '../api/routes.ts';
import type { ConsoleEngine } from '../console-options.ts';
import type { HandlerContext, Handlers } from '../server/handler.ts';
import { Problem } from '../server/problem.ts';
import type { Observer } from '../watch/observer.ts';
import { filterFlags, filterText, parkedFilter, quoted } from './parked-filter.ts';
import { listAnswer, plain } from './parked-handlers.ts';

type ShownOperation = DeepReadonly<z.infer<typeof operation>>;
type Check = DeepReadonly<z.infer<typeof check>>;

export interface OperationSettings {
  readonly engine: ConsoleEngine;
  readonly observer: Observer;
  readonly clock: Clock;
  onError(error: unknown): void;
}

type Kind = 'replay' | 'discard' | 'restore' | 'keep';

interface Selection {
  readonly filter: Filter;
  readonly asOf?: number | undefined;
  readonly expected?: number | undefined;
  readonly why?: string | undefined;
  readonly dry: boolean;
}

/** An operation (such as a replay) that is started here also runs in this process. */
export function operationHandlers(settings: OperationSettings): Handlers<keyof typeof operationRoutes> {
  const { engine, observer, clock, onError } = settings;
  const { triage } = engine;
  const runner = operations({ engine, clock });

  async function begun(
    kind: Kind,
    selection: Selection,
    rest: object,
    context: HandlerContext,
  ): Promise<{ operation: ShownOperation }> {
    const filter = filterOf(kind, selection);
    const request = {
      kind,
      filter,
      ...rest,
      ...(selection.expected !== undefined && { expected: selection.expected }),
    };
    const act = context.act(selection.why);
    const id = context.idempotencyKey === undefined ? undefined : `console-${context.idempotencyKey}`;
    const operation = await runner.begin(request as never, act, id?.slice(0, 200));
    run(runner, operation, onError);
    observer.changed();
    return { operation: await shownOperation(operation) };
  }

  async function previewed(kind: Kind, selection: Selection, rest: object) {
    const filter = filterOf(kind, selection);
    const asOf = await observer.now();
    const covered = { ...filter, to: Math.min(filter.to ?? Infinity, asOf + 1) };
    const count = await runner.dryRun(covered);
    const { items } = await triage.breakdown({ ...covered, isFree: true }, 'topic', 20);
    const topics = items.map(({ value, count: of }) => ({ topic: value ?? '', count: of }));
    return {
      preview: {
        ...{ count, asOf, topics },
        checks: kind === 'replay' ? await replayChecks(filter, topics) : [],
        command: commandOf({ kind, filter, ...rest } as never),
        ...(kind === 'discard' && (await keptUntil(covered, asOf))),
      },
    };
  }

  /** Returns until when a discard can be undone: as long as the store keeps the events. */
  async function keptUntil(filter: ParkedFilter, now: number): Promise<{ undoUntil?: number }> {
    const { items } = await triage.list(filter, { limit: 1 });
    return items[0] ? { undoUntil: now + items[0].removedInMs } : {};
  }

  async function replayChecks(
    filter: ParkedFilter,
    topics: readonly { readonly topic: string }[],
  ): Promise<Check[]> {
    const { now, processes, controls, consumers } = await observer.fleet();
    const names = topics.map(({ topic }) => topic);
    const its = consumers.filter(({ topic }) => names.includes(topic));
    const unread = names.filter((topic) => !its.some((each) => each.topic === topic));
    const paused = controls.filter(
      ({ control }) => control.kind === 'pause' && 'topic' in control && names.includes(control.topic),
    );
    const waits = [...new Set(its.flatMap(({ waitsFor }) => waitsFor))];
    const grown = await triage.count({ ...filter, status: 'parked', from: now - 3e5 });
    return [
      unread.length === 0
        ? {
            name: 'consumers',
            state: 'good',
            says: its.length === 1 ? 'its consumer runs' : `${its.length} consumers run`,
          }
        : { name: 'consumers', state: 'bad', says: `no process that reports consumes ${unread.join(', ')}` },
      waits.length === 0
        ? {
            name: 'breakers',
            state: its.length > 0 ? 'good' : 'unknown',
            says: 'no consumer waits for a breaker',
          }
        : {
            name: 'breakers',
            state: 'bad',
            says: `consumers wait for ${waits.join(', ')}: its breaker is open`,
          },
      paused.length === 0
        ? { name: 'pause', state: 'good', says: 'no topic is paused' }
        : { name: 'pause', state: 'bad', says: `paused: ${paused.map(({ id }) => id).join(', ')}` },
      grown === 0
        ? { name: 'arriving', state: 'good', says: 'none of these was parked in the last 5 minutes' }
        : {
            name: 'arriving',
            state: 'bad',
            says: `${grown} of these were parked in the last 5 minutes: the cause may still be there`,
          },
      versionCheck(its, processes, now),
    ];
  }

  async function shownOperation(each: Operation): Promise<ShownOperation> {
    const { id, request, act, stage, startedAt, endedAt, stopped, counts } = each;
    const filter = request.kind === 'undo' ? {} : request.filter;
    const left = each.counts.selected - each.counts.released;
    return plain({
      ...{ id, kind: request.kind, stage, who: act.who, why: act.why, startedAt, endedAt, stopped, counts },
      filter: request.kind === 'undo' ? `operation ${request.of}` : filterText(filter),
      ...{ command: commandOf(request), expected: request.expected },
      ...(request.kind === 'replay' && {
        ...{ rate: request.rate, canary: request.canary, to: request.to },
        ...{ stopAbove: request.stopAbove, outstandingMax: request.outstandingMax },
        leftMs: endedAt === undefined && left > 0 ? (left / request.rate) * 1000 : undefined,
      }),
      undoUntil: await undoUntil(each),
      stoppedBy: stopped === undefined ? undefined : await stoppedBy(id),
    }) as ShownOperation;
  }

  /** Who stopped an operation; `undefined` if it stopped itself. */
  async function stoppedBy(id: string): Promise<string | undefined> {
    const { items } = await engine.audit.list(
      { subject: subject('operation', id), what: 'operation_stopped' },
      { limit: 1 },
    );
    return items[0]?.who;
  }

  async function undoUntil({ id, request, endedAt }: Operation): Promise<number | undefined> {
    if (request.kind !== 'discard' && request.kind !== 'keep' && request.kind !== 'restore') return undefined;
    if (endedAt === undefined) return undefined;
    const { items } = await engine.audit.list(
      { subject: subject('operation', id), what: request.kind },
      { limit: 1 },
    );
    if (items[0]?.undoneBy !== undefined) return undefined;
    // This is an estimate. The real retention time of the events is not known here.
    return endedAt + 7 * 864e5;
  }

  async function operationOf(id: string): Promise<Operation> {
    const found = await triage.operations.get(id);
    if (found) return found;
    throw new Problem('unknown', `There is no operation ${id}.`);
  }

  const many =
    (kind: 'discard' | 'restore') =>
    ({ body }: { readonly body: Selection }, context: HandlerContext) =>
      body.dry ? previewed(kind, body, {}) : begun(kind, body, {}, context);

  return {
    async 'GET /replays'({ query: { limit, cursor, kind, unfinished } }) {
      const question = {
        ...(kind === 'replay' && { kind: 'replay' as const }),
        ...(unfinished !== undefined && { unfinished }),
      };
      const page = await triage.operations.list(question, { limit, ...(cursor !== undefined && { cursor }) });
      const items = await Promise.all(page.items.map(shownOperation));
      return listAnswer(await observer.now(), { ...page, items }, (item) => item);
    },

    async 'GET /replays/:id'({ path: { id } }) {
      const found = await operationOf(id);
      const isReplay = found.request.kind === 'replay';
      const failed = isReplay && found.counts.failedAgain > 0;
      const groups = failed
        ? await triage.groups({ replayedBy: id, status: 'parked' }, { limit: 10 })
        : undefined;
      return {
        now: await observer.now(),
        operation: await shownOperation(found),
        failedAgain: (groups?.items ?? []).map(({ fingerprint, topics, ...group }) => ({
          ...group,
          topics: [...topics],
          value: fingerprint,
        })),
      };
    },

    'POST /replays'({ body }, context) {
      const { rate, canary, canaryMs, stopAbove, to } = body;
      const rest = plain({ rate, canary, canaryMs, stopAbove, to });
      return body.dry
        ? previewed('replay', body, { ...defaultReplay, ...rest })
        : begun('replay', body, rest, context);
    },

    async 'PATCH /replays/:id'({ path: { id }, body: { rate, why } }, { act }) {
      await operationOf(id);
      if (!(await setRate(triage, id, rate, act(why))))
        throw new Problem('does-not-fit', `Operation ${id} is no replay, or has ended.`);
      return { operation: await shownOperation(await operationOf(id)) };
    },

    async 'POST /replays/:id/stop'({ path: { id }, body: { why } }, { act }) {
      await operationOf(id);
      if (!(await stopOperation(triage, id, act(why))))
        throw new Problem('does-not-fit', `Operation ${id} has ended, or is stopping.`);
      observer.changed();
      return { operation: await shownOperation(await operationOf(id)) };
    },

    'POST /discards': many('discard'),
    'POST /restores': many('restore'),
    'POST /keeps'({ body: { forMs, ...body } }, context) {
      const rest = { keepMs: forMs };
      return body.dry ? previewed('keep', body, rest) : begun('keep', body, rest, context);
    },
  };
}

/**
 * Returns the filter of an act (such as a discard). It excludes events that were parked after the user saw
 * the preview.
 */
function filterOf(kind: Kind, { filter: words, asOf }: Selection): ParkedFilter {
  const filter = parkedFilter(words);
  const seen = asOf === undefined ? filter : { ...filter, to: Math.min(filter.to ?? Infinity, asOf + 1) };
  return kind === 'restore' ? { ...seen, status: 'discarded' } : seen;
}

/** Runs an operation in the background. After a crash, `maintenance` of any process continues it. */
function run(runner: OperationRunner, { id }: Operation, onError: (error: unknown) => void): void {
  runner.run(id).catch(onError);
}

function versionCheck(
  consumers: readonly { readonly process: string }[],
  processes: readonly PresentProcess[],
  now: number,
): Check {
  const startedAt = Math.max(0, ...processes.map((process) => process.startedAt));
  if (consumers.length === 0 || startedAt === 0)
    return { name: 'handler', state: 'unknown', says: 'no process tells when it was started' };
  return {
    name: 'handler',
    state: 'good',
    says: `the newest process was started ${spanText(now - startedAt)} ago`,
  };
}

function commandOf(request: OperationRequest): string {
  if (request.kind === 'undo') return `holdfast dlq discard --undo ${quoted(request.of)}`;
  const chosen = filterFlags(request.filter);
  switch (request.kind) {
    case 'replay': {
      const { rate, canary, to } = request;
      const given = [
        ...(rate === undefined ? [] : [`--rate ${rate}`]),
        ...(canary === undefined ? [] : [`--canary ${canary}`]),
        ...(to === undefined ? [] : [`--to ${quoted(to)}`]),
      ];
      return ['holdfast dlq replay', chosen, ...given].join(' ');
    }
    case 'keep':
      return `holdfast dlq keep ${chosen} --for ${Math.round(request.keepMs / 36e5)}h`;
    case 'discard':
      return `holdfast dlq discard ${chosen}`;
    case 'restore':
      return `holdfast dlq discard --restore ${chosen}`;
  }
}

export function shownEntry(entry: AuditEntry, canUndo: boolean) {
  const { id, at, who, why, what, subjects, count, undoes, undoneBy } = entry;
  return plain({ id, at, who, why, what, subjects: [...subjects], count, undoes, undoneBy, canUndo });
}
