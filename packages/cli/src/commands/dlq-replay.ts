import {
  isEmptyFilter,
  type ParkedFilter,
  type ReplayOperation,
  type ReplayRequest,
} from '@holdfast/contracts';
import { type Replayer, replayer } from '@holdfast/events';
import { systemClock } from 'holdfast';
import { type Command, type Given, UsageError } from '../command.ts';
import { actOf, countOf, msOf, numberOf, textOf } from '../given-values.ts';
import { filterFlags, filterOf } from '../parked-flags.ts';
import { type OpenStore, storeFlag, withStore } from '../store.ts';
import type { Terminal } from '../terminal.ts';

export const dlqReplay: Command = {
  name: 'dlq replay',
  summary: 'let parked events happen again: some first, then the rest at a rate',
  operands: '[id…]',
  flags: {
    ...storeFlag,
    ...filterFlags,
    all: { says: 'everything that is parked' },
    'dry-run': { says: 'only say how many it would be' },
    rate: { value: 'events/s', says: '50 unless given' },
    canary: { value: 'count', says: 'how many go first, and must succeed; 5 unless given, 0 for none' },
    'canary-for': { value: 'duration', says: 'how long those are watched; 5s unless given' },
    to: { value: 'topic', says: 'to this topic instead of the one each came from' },
    why: { value: 'text', says: 'kept in the audit log' },
    who: { value: 'name', says: 'kept in the audit log; your user name unless given' },
    detach: { says: 'only begin it: maintenance, or --resume, moves it on' },
    resume: { value: 'replay', says: 'go on with one that was begun' },
    cancel: { value: 'replay', says: 'stop one; what is not released goes back (with --why)' },
  },
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const replays = replayer({ engine });
      const resumed = textOf(given, 'resume');
      if (resumed !== undefined) return follow(engine, replays, resumed, given, terminal);
      const cancelled = textOf(given, 'cancel');
      if (cancelled !== undefined) return cancel(engine, replays, cancelled, given, terminal);

      const filter = wanted(given);
      const count = await replays.dryRun(filter);
      if (given.flags['dry-run'] || count === 0) {
        terminal.out(given.flags.json ? JSON.stringify({ count }) : `${count} parked events match.`);
        return count === 0 && !given.flags['dry-run'] ? 1 : 0;
      }
      const { id } = await replays.begin(
        { ...request(given), filter },
        actOf(given, terminal.user, 'why', 'by hand'),
      );
      if (!given.flags.detach) return follow(engine, replays, id, given, terminal);
      terminal.out(
        given.flags.json ? JSON.stringify({ id, count }) : `replay ${id} of ${count} events has begun.`,
      );
      return 0;
    }),
};

function wanted(given: Given): ParkedFilter {
  const { operands: ids, flags } = given;
  const filter = filterOf(given);
  if (ids.length > 0) {
    if (!isEmptyFilter(filter) || flags.all)
      throw new UsageError('say ids, or a filter, or --all: not several of them.');
    return { ids };
  }
  if (!isEmptyFilter(filter)) {
    if (flags.all) throw new UsageError('say a filter, or --all: not both.');
    return filter;
  }
  if (!flags.all) throw new UsageError('which events? Say ids, a filter such as --topic, or --all.');
  return { from: 0 };
}

function request(given: Given): Partial<ReplayRequest> {
  const to = textOf(given, 'to');
  const fields = {
    rate: numberOf(given, 'rate'),
    canary: countOf(given, 'canary', 0),
    canaryMs: msOf(given, 'canary-for'),
    to,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

async function cancel(
  { triage }: OpenStore,
  replays: Replayer,
  id: string,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  if (!(await triage.replays.get(id))) throw new UsageError(`there is no replay "${id}" here.`);
  const isStopping = await replays.stop(id, actOf(given, terminal.user));
  terminal.out(
    given.flags.json
      ? JSON.stringify({ id, isStopping })
      : isStopping
        ? `replay ${id} stops.`
        : `replay ${id} was over.`,
  );
  return isStopping ? 0 : 1;
}

async function follow(
  engine: OpenStore,
  replays: Replayer,
  id: string,
  given: Given,
  terminal: Terminal,
): Promise<number> {
  const silence = new Silence(engine, (topic) =>
    terminal.err(
      `${terminal.isInteractive ? '\n' : ''}holdfast: nobody takes events of ${JSON.stringify(topic)}: the replay waits until a consumer runs.`,
    ),
  );
  let last = '';
  const print = (operation: ReplayOperation) => {
    const line = given.flags.json ? JSON.stringify(summary(operation)) : progress(operation);
    if (line === last) return;
    last = line;
    if (terminal.isInteractive && !given.flags.json) terminal.draw(line);
    else terminal.out(line);
  };
  try {
    const printThrottled = throttled(print);
    const onProgress = (operation: ReplayOperation) => {
      printThrottled(operation);
      silence.hear(operation);
    };
    const ended = await replays.run(id, { onProgress, signal: terminal.signal });
    await silence.looking;
    print(ended);
    if (terminal.isInteractive && !given.flags.json) terminal.out('');
    const { failedAgain } = ended.counts;
    if (ended.stage === 'stopped') terminal.err(`holdfast: replay ${id} was stopped: ${ended.stopped}.`);
    return ended.stage === 'done' && failedAgain === 0 ? 0 : 1;
  } catch (error) {
    // The replay has begun and has not ended, so the user must resume or cancel it.
    if (terminal.signal.aborted || last !== '')
      terminal.err(
        `\nholdfast: replay ${id} stays where it is; go on with --resume ${id}, or stop it with --cancel ${id}.`,
      );
    throw error;
  }
}

/** After this time without a handled event, the command checks whether a consumer is running. */
const silenceMs = 2000;

/** Warns once if no consumer seems to run for the replayed events: without one a replay waits forever. */
class Silence {
  readonly #engine: OpenStore;
  readonly #print: (topic: string) => void;
  #ended = -1;
  #since = 0;
  #isTold = false;
  looking: Promise<void> | undefined;

  constructor(engine: OpenStore, print: (topic: string) => void) {
    this.#engine = engine;
    this.#print = print;
  }

  hear({ request, counts }: ReplayOperation): void {
    const ended = counts.succeeded + counts.failedAgain;
    const now = systemClock.now();
    if (ended !== this.#ended || ended === counts.released) [this.#ended, this.#since] = [ended, now];
    if (this.#isTold || this.looking || now - this.#since < silenceMs) return;
    this.#since = now;
    this.looking = this.#look(request)
      .catch(() => {}) // the replay uses the same store, and reports the errors of the store
      .finally(() => {
        this.looking = undefined;
      });
  }

  async #look({ to, filter }: ReplayRequest): Promise<void> {
    const { broker } = this.#engine;
    const known = to ?? filter.topic;
    for (const topic of known === undefined ? await broker.topics() : [known]) {
      const { ready, leased, oldestReadyMs } = await broker.counts(topic);
      if (ready === 0 || leased > 0 || oldestReadyMs < silenceMs || this.#isTold) continue;
      this.#isTold = true;
      this.#print(topic);
    }
  }
}

/** Prints only some steps of a replay: a new stage, or each further fiftieth of the work. */
function throttled(print: (operation: ReplayOperation) => void): (operation: ReplayOperation) => void {
  let printedPart = -1;
  let printedStage = '';
  return (operation) => {
    const { released, succeeded, failedAgain, selected } = operation.counts;
    const part =
      selected === 0 ? 0 : Math.floor((50 * (released + succeeded + failedAgain)) / (2 * selected));
    if (part === printedPart && operation.stage === printedStage) return;
    printedPart = part;
    printedStage = operation.stage;
    print(operation);
  };
}

function summary({ id, stage, counts, stopped }: ReplayOperation): object {
  return { id, stage, ...counts, ...(stopped !== undefined && { stopped }) };
}

const barWidth = 24;

function progress({ stage, counts }: ReplayOperation): string {
  const { selected, released, succeeded, failedAgain } = counts;
  const done = selected === 0 ? 0 : Math.round((barWidth * (succeeded + failedAgain)) / selected);
  const bar = '█'.repeat(done) + '░'.repeat(barWidth - done);
  return `${bar} ${stage}: ${released} of ${selected} released, ${succeeded} succeeded, ${failedAgain} failed again`;
}
