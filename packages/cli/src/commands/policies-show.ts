import { type FleetState, fleetState, policiesOf, processName, spanText } from '@holdfast/events';
import { type Command, UsageError } from '../command.ts';
import { controlText } from '../control-text.ts';
import { didYouMean } from '../did-you-mean.ts';
import { onlyOperand } from '../given-values.ts';
import { heardTable } from '../policy-controls.ts';
import { successesOf } from '../policy-totals.ts';
import { storeFlag, withStore } from '../store.ts';
import { bad, good, styled, warning } from '../styled-text.ts';
import { type Cell, table } from '../table.ts';
import { wrapText } from '../text-width.ts';

export const policiesShow: Command = {
  name: 'policies show',
  summary: 'one policy in every process: breakers by target, budget, stops, and which controls are obeyed',
  operands: '<policy>',
  flags: storeFlag,
  examples: ['policies show payment'],
  run: (given, terminal) =>
    withStore(given, terminal, async (engine) => {
      const name = onlyOperand(given, 'the name of a policy');
      const fleet = await fleetState(engine);
      const states = policiesOf(fleet.processes, name);
      const controls = fleet.controls.filter(
        ({ control }) => 'policy' in control && (control.policy === name || control.policy === '*'),
      );
      if (states.length === 0 && controls.length === 0) throw unknownPolicy(name, fleet);
      if (given.flags.json) {
        const shown = states.map(({ process, ...state }) => ({ process: process.id, ...state }));
        terminal.out(JSON.stringify({ policy: name, states: shown, controls }));
        return 0;
      }
      for (const { process, counters, killSwitch, enforcedShare, overridden, targets } of states) {
        terminal.out(styled(processName(process)));
        const { operations, succeededAfterRetry, stops, would } = counters;
        const stopped = counted(stops);
        const line = [
          `${operations} calls, ${successesOf(counters)} succeeded, ${succeededAfterRetry} of them after a retry`,
          ...(stopped.length > 0 ? [`stopped: ${stopped.join(', ')}`] : []),
          ...(enforcedShare === undefined ? [] : [observedText(enforcedShare, counted(would))]),
          ...(killSwitch ? ['retries are off'] : []),
          ...(overridden ? [`overridden: ${JSON.stringify(overridden)}`] : []),
        ].join('; ');
        terminal.out(wrapText(`  ${line}`, terminal.columns, 2));
        const rows = targets.map((each): Cell[] => [
          ...[each.target ?? '(none)', breakerCell(each.breaker, each.forced?.state)],
          each.breakerForMs === undefined ? '' : spanText(each.breakerForMs),
          each.breakerBecause === undefined ? '' : String(each.breakerBecause),
          each.window ? `${each.window.failures} of ${each.window.calls}` : '',
          each.tokens === undefined
            ? ''
            : `${Math.floor(each.tokens)} of ${Math.floor(each.tokensMax ?? each.tokens)}`,
          String(each.inFlight),
        ]);
        const headings = [
          'TARGET',
          'BREAKER',
          'FOR',
          'BECAUSE',
          'FAILED',
          'TOKENS',
          { heading: 'IN FLIGHT', align: 'right' },
        ] as const;
        if (rows.length > 0) terminal.out(table(headings, rows, terminal.columns));
      }
      if (states.length === 0) terminal.out('No process that is here has this policy.');
      for (const control of controls) {
        terminal.out(
          styled(warning(`\n${wrapText(controlText(control, fleet.now, terminal), terminal.columns, 2)}`)),
        );
        terminal.out(heardTable(control, fleet, terminal));
      }
      return 0;
    }),
};

function counted(by: Readonly<Record<string, number>>): string[] {
  return Object.entries(by).map(([what, count]) => `${count} ${what}`);
}

function observedText(enforcedShare: number, would: readonly string[]): string {
  const share =
    enforcedShare === 0 ? 'only observes' : `enforces ${Math.round(100 * enforcedShare)} % of the work`;
  return would.length === 0 ? share : `${share}, and would have done: ${would.join(', ')}`;
}

export function unknownPolicy(name: string, { processes }: FleetState): UsageError {
  const names = [...new Set(policiesOf(processes).map((each) => each.name))];
  const meant = didYouMean(name, names);
  const here = names.length === 0 ? '; no process reports a policy.' : `; there are: ${names.join(', ')}.`;
  return new UsageError(`no process here has a policy "${name}"${meant || here}`);
}

function breakerCell(state: string | undefined, forced: string | undefined): Cell {
  if (state === undefined) return '';
  const text = forced === undefined ? state : `${state} (forced)`;
  return state === 'closed' ? good(text) : bad(text);
}
