import type { Act, ParkedEvent } from '@holdfast/contracts';
import type { AnyRequest, OperationRunner } from '@holdfast/events';
import type { Given } from './command.ts';
import { many } from './count-text.ts';
import { doneWord, operationSummary, runWithProgress } from './operation-progress.ts';
import type { OpenStore } from './store.ts';
import { withCommand } from './suggested-command.ts';
import type { Terminal } from './terminal.ts';

/**
 * Discards, restores or keeps events, or undoes such a change. The exit code is 1 if not all listed events
 * were changed, or none at all.
 */
export async function changeEvents(
  engine: OpenStore,
  runner: OperationRunner,
  request: AnyRequest,
  act: () => Act,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const ids = request.kind === 'undo' ? undefined : request.filter.ids;
  const count =
    request.kind === 'undo'
      ? (await engine.triage.operations.get(request.of))?.counts.changed
      : await runner.dryRun(request.filter);
  const verb = doneWord[request.kind];
  if (given.flags['dry-run']) {
    const text =
      request.kind === 'undo'
        ? `operation ${request.of} would be undone: ${many(count ?? 0, 'event')}.`
        : `${many(count ?? 0, 'event')} would be ${verb}.`;
    terminal.out(given.flags.json ? JSON.stringify({ count }) : text);
    return 0;
  }
  if (count === 0) {
    // Nothing would change, so no operation begins: the audit log names only what was done.
    act();
    if (given.flags.json) terminal.out(JSON.stringify({ kind: request.kind, changed: 0 }));
    else {
      for (const each of ids ?? []) terminal.out(await result(engine, each, request.kind, verb));
      terminal.err(`holdfast: no event was ${verb}.`);
    }
    return 1;
  }
  const { id } = await runner.begin({ ...request, ...(count !== undefined && { expected: count }) }, act());
  const isWatched = ids === undefined && !given.flags.json;
  const ended = isWatched
    ? await runWithProgress(engine, runner, id, given, terminal)
    : await runner.run(id, { signal: terminal.signal });
  const { changed } = ended.counts;
  if (given.flags.json) terminal.out(JSON.stringify(operationSummary(ended)));
  else if (ids) for (const each of ids) terminal.out(await result(engine, each, request.kind, verb));
  if (!given.flags.json) {
    const sentence = `${changed} ${changed === 1 ? 'event is' : 'events are'} ${verb}.`;
    if (changed === 0) terminal.err(`holdfast: no event was ${verb}.`);
    else if (request.kind === 'undo') terminal.out(sentence);
    else
      terminal.out(
        withCommand(`${sentence} Undo it with`, `dlq discard --undo ${id} --why …`, given, terminal),
      );
  }
  return changed === 0 || (ids !== undefined && changed < ids.length) ? 1 : 0;
}

async function result({ triage }: OpenStore, id: string, kind: string, verb: string): Promise<string> {
  const event = await triage.get(id);
  if (!event) return `${id} was not ${verb}: it is not parked here.`;
  return isAsWanted(event, kind) ? `${id} is ${verb}.` : `${id} was not ${verb}: it is ${event.status}.`;
}

function isAsWanted({ status, operation }: ParkedEvent, kind: string): boolean {
  if (operation !== undefined) return false;
  return kind === 'discard' ? status === 'discarded' : status === 'parked';
}
