import type { ParkedEvent, ParkedFilter, ReplayRequest } from '@holdfast/contracts';
import { fleetState, isMaintained, type OperationRunner, operations } from '@holdfast/events';
import { actOf, byHand, harmlessActFlags } from '../acts.ts';
import { type Command, type Given, UsageError } from '../command.ts';
import { many } from '../count-text.ts';
import { countOf, msOf, numberOf, shareOf, textOf } from '../given-values.ts';
import { unmaintained } from '../maintained.ts';
import { runWithProgress, waysOn } from '../operation-progress.ts';
import { chooseFlags, chosenFilter } from '../parked-flags.ts';
import { operationId } from '../parked-ids.ts';
import { type OpenStore, storeFlag, withStore } from '../store.ts';
import { withCommand } from '../suggested-command.ts';
import type { Terminal } from '../terminal.ts';

export const dlqReplay: Command = {
  name: 'dlq replay',
  summary: 'let parked events happen again: some first, then the rest at a rate',
  operands: '[id…]',
  flags: {
    ...storeFlag,
    ...chooseFlags,
    rate: { value: 'events/s', says: '50 unless given; with --resume, the new rate of a replay' },
    canary: { value: 'count', says: 'how many go first, and must succeed; 5 unless given, 0 for none' },
    'canary-for': { value: 'duration', says: 'how long those are watched; 5s unless given' },
    'stop-above': { value: 'share', says: 'stop when more than this share fails again; 50% unless given' },
    to: { value: 'topic', says: 'to this topic instead of the one each came from' },
    ...harmlessActFlags,
    detach: { says: 'only begin it: maintenance, or --resume, moves it on' },
    resume: { value: 'replay', says: 'go on with one that was begun' },
    cancel: { value: 'replay', says: 'stop one; what is not released goes back (with --why)' },
  },
  examples: [
    "dlq replay --group 4f1d9ac0 --why 'fixed in 2.3.1'",
    'dlq replay --topic orders --not tenant=acme --dry-run',
    'dlq replay --all --rate 20 --stop-above 10%',
    'dlq replay --resume 14e22cc7 --rate 5',
  ],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const runner = operations({ engine });
      const resumed = textOf(given, 'resume');
      if (resumed !== undefined) return resume(engine, runner, resumed, given, terminal);
      const cancelled = textOf(given, 'cancel');
      if (cancelled !== undefined) return cancel(engine, runner, cancelled, given, terminal);

      const request = requestOf(given);
      const filter = await chosenFilter(given, engine);
      const expected = await runner.dryRun(filter);
      const known = await knownIds(engine, filter.ids ?? [], given, terminal);
      if (filter.ids && known === 0) return 1;
      if (given.flags['dry-run'] || expected === 0) {
        const text = `${many(expected, 'parked event')} ${expected === 1 ? 'matches' : 'match'}.`;
        terminal.out(given.flags.json ? JSON.stringify({ count: expected }) : text);
        await printOwners(engine, filter, given, terminal);
        return expected === 0 && !given.flags['dry-run'] ? 1 : 0;
      }
      const act = actOf(given, terminal, byHand);
      const { id } = await runner.begin({ kind: 'replay', ...request, filter, expected }, act);
      if (!given.flags.detach) return followReplay(engine, runner, id, given, terminal);
      terminal.out(
        given.flags.json
          ? JSON.stringify({ id, count: expected })
          : `replay ${id} of ${many(expected, 'event')} has begun.`,
      );
      const { processes } = await fleetState(engine);
      if (!isMaintained(processes)) terminal.err(`holdfast: ${unmaintained(id, given, terminal)}`);
      return 0;
    }),
};

/** Names the ids that no event has, and the events that are not parked. Returns how many ids an event has. */
async function knownIds(
  engine: OpenStore,
  ids: readonly string[],
  given: Given,
  terminal: Terminal,
): Promise<number> {
  let known = 0;
  for (const id of ids) {
    const event = await engine.triage.get(id);
    if (event) known += 1;
    if (!event)
      terminal.err(`holdfast: no event ${id} is parked here${id === 'all' ? '; did you mean --all?' : '.'}`);
    else if (event.status !== 'parked')
      terminal.err(
        `holdfast: event ${id} is ${event.status}.${await releasedBy(engine, event, given, terminal)}`,
      );
  }
  return known;
}

/** Names the unfinished replay that released an event, and how to continue or stop it. */
async function releasedBy(
  { triage }: OpenStore,
  { status, replayedBy }: ParkedEvent,
  given: Given,
  terminal: Terminal,
): Promise<string> {
  if (status !== 'replaying' || replayedBy === undefined) return '';
  const replay = await triage.operations.get(replayedBy);
  if (!replay || replay.stage === 'done' || replay.stage === 'stopped') return '';
  return ` Replay ${replay.id}, which is at "${replay.stage}", released it. ${waysOn(replay.id, given, terminal)}`;
}

/**
 * Some of the selected events may already belong to unfinished operations. Prints these operations, and how
 * to continue or stop them.
 */
async function printOwners(
  { triage }: OpenStore,
  filter: ParkedFilter,
  given: Given,
  terminal: Terminal,
): Promise<void> {
  const { items } = await triage.operations.list({ unfinished: true }, { limit: 100 });
  for (const { id, request, stage } of items) {
    const owned = await triage.count({ ...filter, operation: id });
    if (owned === 0) continue;
    const whose = `${owned === 1 ? 'belongs' : 'belong'} to ${request.kind} ${id}, which is at "${stage}".`;
    terminal.err(`holdfast: ${many(owned, 'more parked event')} ${whose} ${waysOn(id, given, terminal)}`);
  }
}

function requestOf(given: Given): Partial<ReplayRequest> {
  const fields = {
    rate: numberOf(given, 'rate'),
    canary: countOf(given, 'canary', 0),
    canaryMs: msOf(given, 'canary-for'),
    stopAbove: shareOf(given, 'stop-above'),
    to: textOf(given, 'to'),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

async function resume(
  engine: OpenStore,
  runner: OperationRunner,
  shortId: string,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const id = await operationId(engine.triage, shortId);
  const rate = numberOf(given, 'rate');
  if (rate !== undefined && !(await runner.setRate(id, rate, actOf(given, terminal, byHand))))
    throw new UsageError(`--rate: replay ${id} is over, or is no replay.`);
  if (!given.flags.detach) return followReplay(engine, runner, id, given, terminal);
  terminal.out(given.flags.json ? JSON.stringify({ id, rate }) : `replay ${id} releases ${rate} events/s.`);
  return 0;
}

async function cancel(
  { triage }: OpenStore,
  runner: OperationRunner,
  shortId: string,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const id = await operationId(triage, shortId);
  const isStopping = await runner.stop(id, actOf(given, terminal));
  const stage = (await triage.operations.get(id))?.stage;
  // Perhaps no process runs this replay. So this command itself parks the unreleased events again.
  if (stage === 'stopping') await runner.run(id, { signal: terminal.signal });
  const sentence = isStopping || stage === 'stopping' ? `replay ${id} is stopped.` : `replay ${id} was over.`;
  terminal.out(given.flags.json ? JSON.stringify({ id, isStopping }) : sentence);
  return isStopping ? 0 : 1;
}

/**
 * Runs a replay and prints its progress. The exit code is 1 if the replay was stopped or if events failed
 * again.
 */
export async function followReplay(
  engine: OpenStore,
  runner: OperationRunner,
  id: string,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const { stage, stopped, counts } = await runWithProgress(engine, runner, id, given, terminal);
  if (stage === 'stopped') terminal.err(`holdfast: replay ${id} was stopped: ${stopped}.`);
  if (counts.failedAgain > 0 && !given.flags.json)
    terminal.err(
      `holdfast: ${withCommand('look at what failed again with', `dlq replays show ${id}`, given, terminal)}`,
    );
  return stage === 'done' && counts.failedAgain === 0 ? 0 : 1;
}
