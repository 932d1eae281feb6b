import { type FleetFigures, type FleetNeeds, needsOf } from '@holdfast/events';
import { sleep, systemClock } from 'holdfast';
import type { Command, Given } from '../command.ts';
import { many } from '../count-text.ts';
import { msOf } from '../given-values.ts';
import { type OpenStore, storeFlag, withStore } from '../store.ts';
import { bad, bold, dim, good, type StyledPiece, StyledText } from '../styled-text.ts';
import { commandLine, wrapCommand } from '../suggested-command.ts';
import type { Terminal } from '../terminal.ts';
import { wrapped, wrapText } from '../text-width.ts';
import { date } from '../times.ts';

export const status: Command = {
  name: 'status',
  summary: 'does anything need a person? (exit code 1)',
  flags: {
    ...storeFlag,
    watch: { says: 'look again and again, until it is interrupted' },
    every: { value: 'duration', says: 'with --watch: how often to look; 5s unless given' },
  },
  examples: ['status', 'status --watch', 'status --json'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      if (!given.flags.watch) {
        const seen = await statusOf(engine);
        if (given.flags.json) terminal.out(JSON.stringify(seen));
        else terminal.out(statusText(seen, given, terminal));
        return seen.needs.length > 0 ? 1 : 0;
      }
      const everyMs = msOf(given, 'every') ?? 5000;
      let last = '';
      for (;;) {
        last = show(await statusOf(engine), last, given, terminal);
        await sleep(systemClock, everyMs, terminal.signal);
      }
    }),
};

/** The parts of the store's state that this command prints. */
type Status = Pick<FleetNeeds, 'now' | 'needs' | 'notes' | 'good' | 'figures'>;

async function statusOf(engine: OpenStore): Promise<Status> {
  const { now, needs, notes, good: well, figures } = await needsOf(engine);
  return { now, needs, notes, good: well, figures };
}

/**
 * Prints a status. In a terminal, it replaces the previous status. In a pipe, it is printed only if it has
 * changed.
 */
function show(seen: Status, last: string, given: Given, terminal: Terminal): string {
  const text = statusText(seen, given, terminal);
  const { now: _, ...rest } = seen;
  const key = JSON.stringify(rest);
  if (given.flags.json) {
    if (key !== last) terminal.out(JSON.stringify(seen));
  } else if (terminal.isInteractive) {
    terminal.clear();
    terminal.out(text);
    terminal.out(`\n${date(seen.now)}, again every ${given.flags.every ?? '5s'}; Ctrl-C ends it.`);
  } else if (key !== last) {
    terminal.out(`${date(seen.now)}`);
    terminal.out(text);
    terminal.out('');
  }
  return key;
}

/**
 * The sentence for a status without needs (problems that need a person). An empty store is probably the wrong
 * one, so the sentence asks. If parked events wait, it says only that nothing is urgent.
 */
function quietSentence({ notes, figures: { topics, processes, assemblies } }: Status): string {
  if (topics === 0 && processes === 0 && assemblies === 0)
    return 'Nothing is in this store: is it the right one?';
  return notes.some(({ kind }) => kind === 'waiting') ? 'Nothing is urgent.' : 'Nothing needs you.';
}

function statusText(seen: Status, given: Given, terminal: Terminal): StyledText {
  const { needs, notes, good: checked, figures } = seen;
  const { columns } = terminal;
  const lines: (string | StyledPiece)[][] = [];
  if (needs.length === 0) lines.push([good(quietSentence(seen))]);
  else lines.push([bad(needs.length === 1 ? '1 thing needs you.' : `${needs.length} things need you.`)]);
  for (const { says, command } of [...needs, ...notes]) {
    const sentences = columns === undefined ? [says] : wrapped(says, columns - 4, true);
    lines.push([''], ...sentences.map((text, index) => [`${index === 0 ? '  ' : '    '}${text}`]));
    const pasted = wrapCommand(`    ${commandLine(command, given, terminal)}`, columns);
    lines.push([bold(pasted)]);
  }
  if (checked.length > 0) {
    const text = wrapText(`checked: ${checked.join('; ')}.`, columns, 2);
    lines.push([''], ...text.split('\n').map((line) => [dim(line)]));
  }
  lines.push(
    [''],
    ...wrapText(figuresText(figures), columns, 2)
      .split('\n')
      .map((line) => [line]),
  );
  return new StyledText(lines.flatMap((line, index) => (index === 0 ? line : ['\n', ...line])));
}

function figuresText(figures: FleetFigures): string {
  const { topics, ready, delayed, inHand, parked, processes, consumers, policies } = figures;
  const { suspects, blocking, assemblies, assembliesParked } = figures;
  return (
    `${many(topics, 'topic')}: ${ready} ready, ${delayed} delayed, ${inHand} in hand, ` +
    `${suspects === 0 ? '' : `${many(suspects, 'suspect')}, `}${parked} parked` +
    `${blocking === 0 ? '; ' : ` (${blocking} ${blocking === 1 ? 'blocks its key' : 'block their keys'}); `}` +
    `${assemblies === 0 ? '' : `${many(assemblies, 'assembly', 'assemblies')}: ${assembliesParked} parked; `}` +
    `${many(processes, 'process', 'processes')}: ${many(consumers, 'consumer')}, ` +
    `${many(policies, 'policy', 'policies')}, ${many(figures.breakersOpen, 'breaker')} open; ` +
    `${many(figures.operationsRunning, 'operation')} running.`
  );
}
