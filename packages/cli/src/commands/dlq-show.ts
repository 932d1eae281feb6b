import type { ParkedEvent } from '@holdfast/contracts';
import { spanText, stopAdvice } from '@holdfast/events';
import type { Command } from '../command.ts';
import { errorLine } from '../error-line.ts';
import { onlyOperand } from '../given-values.ts';
import { eventIds } from '../parked-ids.ts';
import { storeFlag, withStore } from '../store.ts';
import { bad, type StyledPiece, styled } from '../styled-text.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine, wrapped, wrapText } from '../text-width.ts';
import { ago, date } from '../times.ts';

export const dlqShow: Command = {
  name: 'dlq show',
  summary: 'everything about one parked event',
  operands: '<id>',
  flags: storeFlag,
  examples: ['dlq show 019b76da-abe8-779c-b172-3b0614e22cc7', 'dlq show 14e22cc7 --json'],
  run: (given, terminal) =>
    withStore(given, terminal, async ({ triage, controls }) => {
      const [id = ''] = await eventIds(triage, [onlyOperand(given, 'the id of an event')]);
      const event = await triage.get(id);
      if (!event) {
        terminal.err(`holdfast: no event ${id} is parked here.`);
        return 1;
      }
      if (given.flags.json) terminal.out(JSON.stringify({ ...event, payload: shown(event) }));
      else describe(event, (await controls.active()).now, terminal);
      return 0;
    }),
};

/** The longest label, `idempotencyKey`, has 14 characters; 2 more are a gap. */
const labelWidth = 16;

function describe(event: ParkedEvent, now: number, terminal: Terminal): void {
  const { diagnosis, edits, earlier } = event;
  const { error, story } = diagnosis;
  const line = (
    name: string,
    value: string | undefined,
    style = (text: string): string | StyledPiece => text,
  ) => {
    if (value === undefined || value === '') return;
    const width = terminal.columns === undefined ? Infinity : terminal.columns - labelWidth;
    wrapped(value, width, true).forEach((text, index) => {
      terminal.out(styled((index === 0 ? name : '').padEnd(labelWidth), style(text)));
    });
  };
  line('event', `${event.id} (${event.status})`);
  line('error', errorLine(diagnosis.reason, diagnosis.message), bad);
  if (error?.code !== undefined && error.code !== error.type) line('  code', error.code, bad);
  for (const { type, message } of error?.causes ?? []) line('  because', errorLine(type, message), bad);
  line('stopped', `${diagnosis.stop}, at attempt ${diagnosis.finalAttempt}`);
  attempts(story, terminal);
  const advice = stopAdvice(diagnosis.stop, diagnosis.message);
  if (advice !== undefined) terminal.out(wrapText(`  ${diagnosis.stop}: ${advice}.`, terminal.columns, 4));
  if (error?.stack) terminal.out(`\n${stackOf(error.stack, terminal)}`);
  terminal.out('');
  line(
    'topic',
    event.topic === event.originTopic ? event.topic : `${event.topic}, first ${event.originTopic}`,
  );
  for (const name of ['type', 'key', 'tenant', 'correlationId', 'idempotencyKey'] as const)
    line(name, event[name]);
  line('first seen', date(event.firstSeenAt));
  const age = terminal.columns === undefined ? '' : ` (${ago(event.parkedAt, now, terminal)})`;
  line('parked', `${date(event.parkedAt)}${age}${event.parkings > 1 ? `, ${event.parkings} times` : ''}`);
  line('kept until', date(event.removedAt));
  line('consumer', diagnosis.consumer);
  line('replay', event.operation ?? event.replayedBy);
  if (event.discarded) line('discarded', `by ${event.discarded.who}: ${event.discarded.why}`);
  line('group', error?.fingerprint);
  for (const each of earlier) {
    const by = each.replay === undefined ? '' : `, by replay ${each.replay}`;
    const text = `parked before at ${date(each.parkedAt)}${by}: ${errorLine(each.reason, each.message)} (${each.stop}, attempt ${each.finalAttempt})`;
    terminal.out(`\n${wrapText(text, terminal.columns, 2)}`);
  }
  for (const { who, why, changes } of edits) {
    terminal.out(`\nedited by ${who}: ${why}`);
    for (const { path, before, after } of changes) terminal.out(`  ${path}: ${before} -> ${after}`);
  }
  for (const [name, value] of Object.entries(event.headers)) terminal.out(`${name}: ${value}`);
  terminal.out(`\n${shown(event)}`);
}

/** The list of attempts cuts errors to this many characters. */
const errorMax = 120;

function attempts(story: ParkedEvent['diagnosis']['story'], terminal: Terminal): void {
  if (story.length > 0) terminal.out('\nattempts');
  for (const { attempt, at, tookMs, errorType, errorMessage, verdict, because, delayMs } of story) {
    const next = delayMs === undefined ? '' : `, again after ${spanText(delayMs)}`;
    const text = `  ${attempt}. ${date(at)} took ${tookMs} ms: ${oneLine(errorLine(errorType, errorMessage), errorMax)}; ${verdict} (${because})${next}`;
    terminal.out(wrapText(text, terminal.columns, 3));
  }
}

const framesMax = 5;

/**
 * A terminal shows only the first frames of the application. All other frames would push the rest off the
 * screen. A pipe gets the whole stack.
 */
function stackOf(stack: string, { columns }: Terminal): string {
  if (columns === undefined) return stack;
  const lines = stack.split('\n');
  const isFrame = (line: string) => /^\s+at /.test(line);
  const frames = lines.filter(isFrame);
  const own = frames.filter((line) => !/node_modules|\(?node:|<anonymous>\)?$/.test(line));
  const kept = (own.length > 0 ? own : frames).slice(0, framesMax);
  const left = frames.length - kept.length;
  const more = left === 0 ? [] : [`    … ${left} more; --json has all`];
  return [...lines.filter((line) => !isFrame(line)), ...kept, ...more].join('\n');
}

function shown({ payload }: ParkedEvent): string {
  return typeof payload === 'string'
    ? payload
    : `${payload.length} bytes, base64: ${Buffer.from(payload).toString('base64')}`;
}
