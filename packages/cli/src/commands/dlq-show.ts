import type { ParkedEvent } from '@holdfast/contracts';
import type { Command } from '../command.ts';
import { onlyOperand } from '../given-values.ts';
import { storeFlag, withStore } from '../store.ts';
import { errorLine, span } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export const dlqShow: Command = {
  name: 'dlq show',
  summary: 'everything about one parked event',
  operands: '<id>',
  flags: storeFlag,
  run: (given, terminal) =>
    withStore(given, terminal, async ({ triage }) => {
      const id = onlyOperand(given, 'the id of an event');
      const event = await triage.get(id);
      if (!event) {
        terminal.err(`holdfast: no event ${id} is parked here.`);
        return 1;
      }
      if (given.flags.json) terminal.out(JSON.stringify({ ...event, payload: shown(event) }));
      else describe(event, terminal);
      return 0;
    }),
};

/** The 14 characters of the longest label, `idempotencyKey`, and a gap of 2. */
const labelWidth = 16;

function describe(event: ParkedEvent, terminal: Terminal): void {
  const { diagnosis, edits } = event;
  const { error, story } = diagnosis;
  const line = (name: string, value: string | undefined) => {
    if (value !== undefined && value !== '') terminal.out(`${name.padEnd(labelWidth)}${value}`);
  };
  line('event', `${event.id} (${event.status})`);
  line(
    'topic',
    event.topic === event.originTopic ? event.topic : `${event.topic}, first ${event.originTopic}`,
  );
  for (const name of ['type', 'key', 'tenant', 'correlationId', 'idempotencyKey'] as const)
    line(name, event[name]);
  line('first seen', new Date(event.firstSeenAt).toISOString());
  line('parked', `${new Date(event.parkedAt).toISOString()}, ${event.parkings} times`);
  line('kept until', new Date(event.removedAt).toISOString());
  line('stopped', `${diagnosis.stop}, at attempt ${diagnosis.finalAttempt}`);
  line('replay', event.operation);
  line('error', errorLine(diagnosis.reason, diagnosis.message));
  for (const { type, message } of error?.causes ?? []) line('  because', errorLine(type, message));
  line('group', error?.fingerprint);
  if (story.length > 0) terminal.out('\nattempts');
  for (const { attempt, at, tookMs, errorType, verdict, because, delayMs } of story) {
    const next = delayMs === undefined ? '' : `, again after ${span(delayMs)}`;
    terminal.out(
      `  ${attempt}. ${new Date(at).toISOString()} took ${tookMs} ms: ${errorType}; ${verdict} (${because})${next}`,
    );
  }
  for (const { who, why, changes } of edits) {
    terminal.out(`\nedited by ${who}: ${why}`);
    for (const { path, before, after } of changes) terminal.out(`  ${path}: ${before} -> ${after}`);
  }
  if (error?.stack) terminal.out(`\n${error.stack}`);
  for (const [name, value] of Object.entries(event.headers)) terminal.out(`${name}: ${value}`);
  terminal.out(`\n${shown(event)}`);
}

function shown({ payload }: ParkedEvent): string {
  return typeof payload === 'string'
    ? payload
    : `${payload.length} bytes, base64: ${Buffer.from(payload).toString('base64')}`;
}
