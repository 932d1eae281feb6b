import type { Inspection } from '@holdfast/assembly';
import type { Payload, StoredStep } from '@holdfast/contracts';
import { assemblyId, withAssemblies } from '../assembly-ids.ts';
import type { Command } from '../command.ts';
import { errorLine } from '../error-line.ts';
import { storeFlag } from '../store.ts';
import { bad, type StyledPiece, styled } from '../styled-text.ts';
import { table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine, wrapped } from '../text-width.ts';
import { ago, date, spanLeft } from '../times.ts';

export const assemblyShow: Command = {
  name: 'assembly show',
  summary: 'everything about one assembly: where it is, its steps and signals',
  operands: '<id>',
  flags: storeFlag,
  examples: ['assembly show 019b76da-abe8-779c-b172-3b0614e22cc7', 'assembly show 14e22cc7 --json'],
  run: (given, terminal) =>
    withAssemblies(given, terminal, async (work) => {
      const found = await work.inspect(await assemblyId(given, work.journal));
      if (given.flags.json) terminal.out(JSON.stringify(asJson(found)));
      else describe(found, await work.journal.now(), terminal);
      return 0;
    }),
};

/** Payloads that are bytes become base64. Infinite times are left out, because JSON has no Infinity. */
function asJson({ assembly, status, steps, signals }: Inspection): object {
  const { patienceLeftMs, ...rest } = status;
  return {
    ...assembly,
    input: shown(assembly.input),
    result: shown(assembly.result),
    status: { ...rest, ...(patienceLeftMs < Infinity && { patienceLeftMs }) },
    steps: steps.map((step) => ({ ...step, result: shown(step.result) })),
    signals: signals.map((signal) => ({ ...signal, payload: shown(signal.payload) })),
  };
}

const labelWidth = 12;

function describe({ assembly, status, steps, signals }: Inspection, now: number, terminal: Terminal): void {
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
  const { stop, parked } = assembly;
  line('assembly', `${assembly.id} (${assembly.name}@${assembly.version})`);
  line('state', `${status.state}: ${status.text}`);
  for (const name of ['tenant', 'key', 'queue', 'worker'] as const) line(name, assembly[name]);
  line('accepted', `${date(assembly.acceptedAt)} (${ago(assembly.acceptedAt, now, terminal)})`);
  if (assembly.endedAt !== undefined) line('ended', date(assembly.endedAt));
  if (assembly.endedAt === undefined && status.patienceLeftMs < Infinity)
    line('patience', `${spanLeft(status.patienceLeftMs)} left`);
  if (status.nextInMs !== undefined) line('due', `in ${spanLeft(status.nextInMs)}`);
  if (stop) line('stopped', `${stop.because}${stop.who ? ` (${stop.who})` : ''}: ${stop.message}`, bad);
  if (parked) line('parked', `${parked.because}: ${parked.message}`, bad);
  for (const { type, message } of parked?.error?.causes ?? [])
    line('  because', errorLine(type, message), bad);
  line('group', parked?.error?.fingerprint);
  if (assembly.deaths > 0) line('deaths', String(assembly.deaths));
  if (assembly.committed) line('committed', 'it can not be cancelled any more');
  for (const { who, why, what, at } of assembly.acts)
    line('changed', `${date(at)} by ${who}: ${what} (${why})`);
  if (steps.length > 0) {
    const headings = [
      { heading: 'STEP', whole: true },
      'STATE',
      { heading: 'ATTEMPTS', align: 'right' },
      { heading: 'AT', whole: true },
      { heading: 'RESULT', below: true },
    ] as const;
    terminal.out('');
    terminal.out(table(headings, steps.map(stepRow), terminal.columns));
  }
  if (signals.length > 0) terminal.out('\nsignals');
  for (const { name, payload, at } of signals)
    terminal.out(oneLine(`  ${date(at)} ${name} ${shown(payload) ?? ''}`, resultMax));
  terminal.out(`\ninput       ${shown(assembly.input)}`);
  if (assembly.result !== undefined) terminal.out(`result      ${shown(assembly.result)}`);
}

const resultMax = 160;

function stepRow({ path, kind, state, attempts, at, result, error, because }: StoredStep) {
  const what = error ? errorLine(error.type, error.message) : (shown(result) ?? because ?? '');
  const short = oneLine(what, resultMax);
  return [
    ...[path, kind === 'run' ? state : `${state} (${kind})`, String(attempts), date(at)],
    error ? bad(short) : short,
  ];
}

function shown(payload: Payload | undefined): string | undefined {
  if (payload === undefined || typeof payload === 'string') return payload;
  return `${payload.length} bytes, base64: ${Buffer.from(payload).toString('base64')}`;
}
