import type { Operation, OperationKind } from '@holdfast/contracts';
import type { OperationRunner } from '@holdfast/events';
import type { Given } from './command.ts';
import { QuietTopics } from './quiet-topics.ts';
import type { OpenStore } from './store.ts';
import { withCommand } from './suggested-command.ts';
import type { Terminal } from './terminal.ts';
import { widthOf } from './text-width.ts';

export const doneWord: Readonly<Record<OperationKind, string>> = {
  replay: 'replayed',
  discard: 'discarded',
  restore: 'restored',
  keep: 'kept',
  undo: 'put back',
};

/**
 * Runs an operation to its end and prints its progress. A terminal gets one line that is overwritten. A pipe
 * gets a few lines. If the user interrupts the command, the operation stays unfinished.
 */
export async function runWithProgress(
  engine: OpenStore,
  runner: OperationRunner,
  id: string,
  given: Given,
  terminal: Terminal,
): Promise<Operation> {
  const isDrawn = terminal.isInteractive && !given.flags.json;
  const quiet = new QuietTopics(engine, (sentence) => {
    if (isDrawn) terminal.draw('');
    terminal.err(`holdfast: ${sentence}`);
  });
  let last = '';
  const print = (operation: Operation) => {
    const line = given.flags.json
      ? JSON.stringify(operationSummary(operation))
      : progressLine(operation, isDrawn ? (terminal.columns ?? 80) : undefined);
    if (line === last) return;
    last = line;
    if (isDrawn) terminal.draw(line);
    else terminal.out(line);
  };
  const printSome = throttled(print);
  try {
    const onProgress = (operation: Operation) => {
      printSome(operation);
      if (operation.request.kind === 'replay') quiet.hear(operation);
    };
    const ended = await runner.run(id, { onProgress, signal: terminal.signal });
    await quiet.looking;
    print(ended);
    if (isDrawn) terminal.out('');
    return ended;
  } catch (error) {
    // The operation has begun and has not ended, so tell the user how to resume or cancel it.
    if (isDrawn && last !== '') terminal.out('');
    if (terminal.signal.aborted || last !== '')
      terminal.err(`holdfast: operation ${id} stays where it is. ${waysOn(id, given, terminal)}`);
    throw error;
  }
}

export function waysOn(id: string, given: Given, terminal: Terminal): string {
  const resume = withCommand('Go on with', `dlq replay --resume ${id}`, given, terminal);
  const cancel = withCommand('Stop it with', `dlq replay --cancel ${id} --why …`, given, terminal);
  return `${resume}${resume.includes('\n') ? '\n' : ' '}${cancel}`;
}

export function operationSummary({ id, request, stage, counts, stopped }: Operation): object {
  return { id, kind: request.kind, stage, ...counts, ...(stopped !== undefined && { stopped }) };
}

/** Prints only when the stage changes, or after each further 2 % of the work. */
function throttled(print: (operation: Operation) => void): (operation: Operation) => void {
  let printedPart = -1;
  let printedStage = '';
  return (operation) => {
    const part = Math.floor(50 * shareDone(operation));
    if (part === printedPart && operation.stage === printedStage) return;
    printedPart = part;
    printedStage = operation.stage;
    print(operation);
  };
}

/**
 * The finished share of an operation, from 0 to 1. A released event counts half until it has succeeded or
 * failed.
 */
function shareDone({ request, counts }: Operation): number {
  if (request.kind !== 'replay') return request.expected ? Math.min(1, counts.changed / request.expected) : 0;
  const { selected, released, succeeded, failedAgain } = counts;
  return selected === 0 ? 0 : (released + succeeded + failedAgain) / (2 * selected);
}

const barMax = 20;

/** Without `columns` (in a pipe) the line has no bar. */
export function progressLine(operation: Operation, columns: number | undefined): string {
  const { request, stage, counts } = operation;
  const text =
    request.kind === 'replay'
      ? `${stage}: ${counts.released} of ${counts.selected} released, ${counts.succeeded} succeeded, ${counts.failedAgain} failed again`
      : `${stage}: ${counts.changed}${request.expected === undefined ? '' : ` of ${request.expected}`} ${doneWord[request.kind]}`;
  if (columns === undefined) return text;
  // The line must fit, because the counts are at its end. One column stays free, and one is a gap.
  const barWidth = Math.max(0, Math.min(barMax, columns - 2 - widthOf(text)));
  if (barWidth < 3) return text;
  const full = Math.round(barWidth * shareDone(operation));
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)} ${text}`;
}
