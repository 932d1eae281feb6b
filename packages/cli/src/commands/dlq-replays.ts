import type { Operation, OperationKind } from '@holdfast/contracts';
import { type Command, UsageError } from '../command.ts';
import { errorLine } from '../error-line.ts';
import { countOf, onlyOperand, textOf } from '../given-values.ts';
import { cursorOf, pasteable } from '../page-cursor.ts';
import { operationId, parkedStatuses } from '../parked-ids.ts';
import { shortNames } from '../short-ids.ts';
import { storeFlag, withStore } from '../store.ts';
import { bad, good, styled, warning } from '../styled-text.ts';
import { withCommand } from '../suggested-command.ts';
import { type Cell, table } from '../table.ts';
import { oneLine, wrapText } from '../text-width.ts';
import { ago } from '../times.ts';

const kinds: readonly OperationKind[] = ['replay', 'discard', 'restore', 'keep', 'undo'];

export const dlqReplaysLs: Command = {
  name: 'dlq replays ls',
  summary: 'replays and other operations on parked events, the latest first',
  flags: {
    ...storeFlag,
    kind: { value: 'kind', says: `${kinds.join(', ')} or any; replay unless given` },
    unfinished: { says: 'only those that have not ended' },
    limit: { value: 'count', says: 'at most so many; 20 unless given' },
    cursor: { value: 'cursor', says: 'the page after this one' },
  },
  examples: ['dlq replays ls --unfinished', 'dlq replays ls --kind any'],
  run: (given, terminal) =>
    withStore(given, terminal, async ({ triage, controls }) => {
      const kind = textOf(given, 'kind') ?? 'replay';
      if (kind !== 'any' && !kinds.includes(kind as OperationKind))
        throw new UsageError(`--kind: expected one of ${kinds.join(', ')}, any, got "${kind}".`);
      const question = {
        ...(kind !== 'any' && { kind: kind as OperationKind }),
        ...(given.flags.unfinished && { unfinished: true }),
      };
      const cursor = cursorOf(given);
      const page = { limit: countOf(given, 'limit', 1) ?? 20, ...(cursor !== undefined && { cursor }) };
      const { items, cursor: next } = await triage.operations.list(question, page);
      if (given.flags.json) {
        for (const item of items) terminal.out(JSON.stringify(item));
        if (next !== undefined) terminal.err(`holdfast: there are more, with --cursor ${pasteable(next)}`);
        return 0;
      }
      if (items.length === 0) {
        terminal.out(kind === 'replay' ? 'There is no replay here.' : 'There is no such operation here.');
        return 0;
      }
      const { now } = await controls.active();
      const short = shortNames(
        items.map(({ id }) => id),
        terminal,
      );
      const rows = items.map((item) => [
        ...[short(item.id), item.request.kind, stageCell(item)],
        ...[doneText(item), ago(item.startedAt, now, terminal), item.act.who, item.act.why],
      ]);
      const headings = [
        { heading: 'ID', whole: true },
        ...['KIND', 'STAGE', 'DONE'],
        { heading: 'BEGUN', whole: true },
        ...['WHO', 'WHY'],
      ] as const;
      terminal.out(table(headings, rows, terminal.columns));
      if (next !== undefined) terminal.out(`\nmore with --cursor ${pasteable(next)}`);
      return 0;
    }),
};

export const dlqReplaysShow: Command = {
  name: 'dlq replays show',
  summary: 'one replay: what it covers, how far it is, and what failed again',
  operands: '<id>',
  flags: storeFlag,
  examples: ['dlq replays show 5c0e77a1'],
  run: (given, terminal) =>
    withStore(given, terminal, async ({ triage, controls }) => {
      const id = await operationId(triage, onlyOperand(given, 'the id of a replay'));
      const operation = (await triage.operations.get(id))!;
      const { request, act, startedAt, endedAt, stopped, counts } = operation;
      const of = { replayedBy: id, status: parkedStatuses };
      const outcomes = await triage.breakdown(of, 'status', parkedStatuses.length);
      const { items: failed } = await triage.groups({ replayedBy: id, status: 'parked' }, { limit: 10 });
      if (given.flags.json) {
        terminal.out(JSON.stringify({ ...operation, outcomes: outcomes.items, failedAgain: failed }));
        return 0;
      }
      const { now } = await controls.active();
      const line = (name: string, value: string) =>
        terminal.out(wrapText(`${name.padEnd(12)}${value}`, terminal.columns, 12));
      terminal.out(styled(`${request.kind.padEnd(12)}${id} (`, stageCell(operation), ')'));
      if (stopped !== undefined) line('stopped', stopped);
      line('begun', `${ago(startedAt, now, terminal)} by ${act.who}: ${act.why}`);
      if (endedAt !== undefined) line('ended', ago(endedAt, now, terminal));
      if (request.kind === 'undo') line('of', request.of);
      else line('events', JSON.stringify(request.filter));
      if (request.kind === 'replay') {
        line(
          'rate',
          `${request.rate} events/s, ${request.canary} first, stops above ${100 * request.stopAbove} %`,
        );
        if (request.to !== undefined) line('to', request.to);
        line(
          'counts',
          `${counts.selected} selected, ${counts.released} released, ${counts.succeeded} succeeded, ${counts.failedAgain} failed again`,
        );
      } else line('counts', doneText(operation));
      if (failed.length > 0) {
        terminal.out('\nfailed again');
        const short = shortNames(
          failed.map(({ fingerprint }) => fingerprint),
          terminal,
        );
        const rows = failed.map(({ fingerprint, count, reason, message }) => [
          ...[short(fingerprint), String(count)],
          bad(oneLine(errorLine(reason, message), 120)),
        ]);
        const headings = [
          { heading: 'GROUP', whole: true },
          { heading: 'EVENTS', align: 'right' },
          { heading: 'ERROR', below: true },
        ] as const;
        terminal.out(table(headings, rows, terminal.columns));
        terminal.out(`\n${withCommand('List them with', `dlq ls --replayed-by ${id}`, given, terminal)}`);
      }
      return 0;
    }),
};

function doneText({ request, counts }: Operation): string {
  if (request.kind !== 'replay') return `${counts.changed} changed`;
  const failed = counts.failedAgain > 0 ? `, ${counts.failedAgain} failed again` : '';
  return `${counts.succeeded} of ${counts.selected}${failed}`;
}

function stageCell({ stage, counts }: Operation): Cell {
  if (stage === 'stopped' || stage === 'stopping') return bad(stage);
  if (stage !== 'done') return warning(stage);
  return counts.failedAgain > 0 ? bad(stage) : good(stage);
}
